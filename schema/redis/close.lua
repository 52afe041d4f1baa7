-- Begins, for one bucket, a change of how records are named: no reserve is let in until it is
-- opened again, so that none of the generation before can commit any more.
--
-- KEYS[1]   the bucket
-- ARGV  1   the number of the change; they grow, and the later one counts
--       2   '1': the store is being made, so that a bucket may have nothing yet
--       3   the store's own name: buckets of several stores do not make one
--
-- Answers {done, ms now, what the bucket counts}; overtaken: by a later change; lost: the bucket has
-- forgotten all that it held; foreign: it is another store's.
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
