-- Replaces a value, whose first 16 bytes are its version, on the condition that it is the one that
-- was read.
--
-- KEYS[1]   where it lies
-- ARGV  1   version of what was read; empty: there was nothing
--       2   the new value
--
-- Answers {done, ms now} or {other, ms now, what lies there}.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lies = redis.call('GET', KEYS[1])
local version = lies and string.sub(lies, 1, 16) or ''
if version == string.sub(ARGV[2], 1, 16) then
  return {'done', now}  -- Asked before, and the reply was lost.
end
if version ~= ARGV[1] then
  return {'other', now, lies}
end
redis.call('SET', KEYS[1], ARGV[2])
return {'done', now}
