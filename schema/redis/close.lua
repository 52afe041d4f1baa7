-- Begins a change of the names of records in one bucket: the bucket refuses reserves until open.lua
-- opens it again, so that no reserve of the generation before can commit any more.
--
-- KEYS[1]   the bucket
-- ARGV  1   the number of the change; they grow, and the latest one counts
--       2   '1': the store is being made, so the bucket may be empty
--       3   the store's id: buckets of other stores are refused
--
-- Answers {done, ms now, the bucket's counters}, or {overtaken, ms now}: there is a later change, or
-- {lost, ms now}: the bucket has lost its content, or {foreign, ms now}: it is another store's.
local meta = KEYS[1] .. 'meta'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local change = redis.call('HGET', meta, 'change')
if not change and ARGV[2] ~= '1' then
  return {'lost', now}
end
if change and redis.call('HGET', meta, 'store') ~= ARGV[3] then
  return {'foreign', now}
end
if change and tonumber(change) > tonumber(ARGV[1]) then
  return {'overtaken', now}
end
redis.call('HSET', meta, 'store', ARGV[3], 'change', ARGV[1], 'generation', 'closed')
return {'done', now, redis.call('HGETALL', meta)}
