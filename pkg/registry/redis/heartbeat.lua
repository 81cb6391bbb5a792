-- Registers or renews one node. Both keys carry the node's hash tag, so that they share a slot.
--   KEYS[1]  hash of the node
--   KEYS[2]  hash of its task list
--   KEYS[3]  text: an incarnation that was evicted; it may not register again
--   ARGV[1]  incarnation
--   ARGV[2]  counter
--   ARGV[3]  life of the keys, ms
--   ARGV[4]  digest of the task list
--   ARGV[5]  length of the task list
--   ARGV[6]  '1' = the list is sent, '0' = it should be as the digest says
--   ARGV[7]  incarnation that this one replaces; '' = none
--   ARGV[8]  how many of the arguments that follow are fields and values of the node's hash
--   ARGV[9]  and on: those, then task id and value of each entry of the list
-- Answers {code, detail}:
--   1 written
--   2 taken; detail = the incarnation that holds the id; nothing is written
--   3 stale; detail = the newer counter; nothing is written
--   4 the list must be sent; nothing is written, so that no heartbeat is ever seen with a list that is not the node's
if redis.call('GET', KEYS[3]) == ARGV[1] then
  return {2, 'nobody: the leader has evicted this incarnation'}
end
local have = redis.call('HMGET', KEYS[1], 'incarnation', 'counter', 'list')
if ARGV[7] ~= '' and have[1] == ARGV[7] then
  have = {false, false, false} -- it is dead: its place is free, and its list is not ours
elseif have[1] then
  if have[1] ~= ARGV[1] then
    return {2, have[1]}
  end
  local counter = tonumber(have[2])
  if counter and counter > tonumber(ARGV[2]) then
    return {3, have[2]}
  end
elseif redis.call('EXISTS', KEYS[1]) == 1 then
  return {2, ''}
end

if ARGV[6] == '0' then
  local exists = redis.call('EXISTS', KEYS[2]) == 1
  if have[3] ~= ARGV[4] or exists ~= (ARGV[5] ~= '0') then
    return {4, ''}
  end
end

local last = 8 + tonumber(ARGV[8])
redis.call('HSET', KEYS[1], unpack(ARGV, 9, last))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if ARGV[6] == '1' then
  redis.call('HSET', KEYS[1], 'list', ARGV[4], 'tasks', ARGV[5])
  redis.call('DEL', KEYS[2])
  -- Lua's stack takes less than 8,000 values at once.
  for first = last + 1, #ARGV, 2000 do
    redis.call('HSET', KEYS[2], unpack(ARGV, first, math.min(first + 1999, #ARGV)))
  end
end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return {1, ''}
