-- Removes a node's keys if they are this incarnation's.
--   KEYS[1]  hash of the node
--   KEYS[2]  hash of its task list
--   ARGV[1]  incarnation
if redis.call('HGET', KEYS[1], 'incarnation') == ARGV[1] then
  return redis.call('DEL', KEYS[1], KEYS[2])
end
return 0
