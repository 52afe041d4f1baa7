-- Puts a record back into the sets by which it is found, if it has not changed since it was read. A set
-- that still has it keeps its place there.
--
-- KEYS[1]   the bucket
-- ARGV  1   the record's id
--       2   the version that was read
--       3   its set; 4 its score there
--       5   its score in the set of the pending; empty: it is not pending
--
-- Answers {done, ms now, the number of sets that it was missing from}.
local bucket, id = KEYS[1], ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('GETRANGE', bucket .. 'r' .. id, 0, 15) ~= ARGV[2] then
  return {'done', now, 0}
end
local added = redis.call('ZADD', bucket .. ARGV[3], 'NX', ARGV[4], id)
if ARGV[5] ~= '' then
  added = added + redis.call('ZADD', bucket .. 'pending', 'NX', ARGV[5], id)
end
return {'done', now, added}
