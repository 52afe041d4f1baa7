-- Ends a change for one bucket: reserves of that generation are let in.
--
-- KEYS[1]   the bucket
-- ARGV  1   the number of the change that closed it
--       2   the generation: its number, for people, and behind a colon what no other one has, of this
--           store or another
--
-- Answers {done, ms now}; overtaken: it was closed by another change since, which will open it.
local meta = KEYS[1] .. 'meta'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('HGET', meta, 'change') ~= ARGV[1] then
  return {'overtaken', now}
end
redis.call('HSET', meta, 'generation', ARGV[2])
return {'done', now}
