-- Puts a node into the index of the keys to read. Scores are times of the server's own clock; members whose node has
-- sent no heartbeat for two lives of a key are removed.
--   KEYS[1]  sorted set
--   ARGV[1]  node id
--   ARGV[2]  life of a key, ms
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - 2 * tonumber(ARGV[2])))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
