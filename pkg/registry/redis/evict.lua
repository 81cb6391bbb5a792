-- Evicts an incarnation: its keys are removed, and its heartbeats are refused for the life of a key. Does nothing if
-- another incarnation holds the id.
--   KEYS[1]  hash of the node
--   KEYS[2]  hash of its task list
--   KEYS[3]  text: the incarnation that is evicted
--   ARGV[1]  incarnation
--   ARGV[2]  life of a key, ms
if redis.call('HGET', KEYS[1], 'incarnation') ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[2])
return 1
