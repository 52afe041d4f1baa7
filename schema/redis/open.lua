-- Ends a change for one bucket: the bucket admits reserves of the new generation.
--
-- KEYS[1]   the bucket
-- ARGV  1   the number of the change that closed it
--       2   the generation: its number, for people, a colon, and a mark that no other generation of any
--           store has
--
-- Answers {done, ms now}, or {overtaken, ms now}: a later change has closed the bucket, and will open
-- it.
local meta = KEYS[1] .. 'meta'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if redis.call('HGET', meta, 'change') ~= ARGV[1] then
  return {'overtaken', now}
end
redis.call('HSET', meta, 'generation', ARGV[2])
return {'done', now}
