-- Compares the sets of one bucket, by which sweeper, reaper, dispatcher and reconciler find records,
-- with the bucket's counters. An eviction removes whole keys, and then they differ.
--
-- KEYS[1]   the bucket
--
-- Answers {same, ms now}, or {differs, ms now, and by how much each set is short of its counters:
-- due:sweep, due:reap, unknown, pending}, or {lost, ms now}: the counters are gone, too.
local bucket = KEYS[1]
local meta = bucket .. 'meta'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local n = redis.call('HMGET', meta, 'in:1', 'in:2', 'in:3', 'in:4', 'in:5', 'in:6', 'change')
if not n[7] then
  return {'lost', now}
end
local short = {
  (n[1] or 0) + (n[2] or 0) - redis.call('ZCARD', bucket .. 'due:sweep'),
  (n[3] or 0) + (n[4] or 0) + (n[6] or 0) - redis.call('ZCARD', bucket .. 'due:reap'),
  (n[5] or 0) - redis.call('ZCARD', bucket .. 'unknown'),
  (n[1] or 0) - redis.call('ZCARD', bucket .. 'pending'),
}
for _, by in ipairs(short) do
  if by ~= 0 then
    return {'differs', now, short[1], short[2], short[3], short[4]}
  end
end
return {'same', now}
