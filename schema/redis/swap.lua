-- Replaces a value, whose first 16 bytes are its version, on the condition that it has not changed
-- since it was read.
--
-- KEYS[1]   the value's key
-- ARGV  1   the version that was read; empty: there was no value
--       2   the new value
--
-- Answers {done, ms now} or {other, ms now, the current value}.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local current = redis.call('GET', KEYS[1])
local version = current and string.sub(current, 1, 16) or ''
if version == string.sub(ARGV[2], 1, 16) then
  return {'done', now}  -- A repeat: the first reply was lost.
end
if version ~= ARGV[1] then
  return {'other', now, current}
end
redis.call('SET', KEYS[1], ARGV[2])
return {'done', now}
