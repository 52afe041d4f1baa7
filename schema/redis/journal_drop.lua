-- Removes a journal, on the condition that its last line is the one that the caller knows.
--
-- KEYS[1]   the beginning of all journals' keys
-- ARGV  1   the journal's name; 2 the number of its last line; 0: none
--
-- Answers {dropped, ms now, 0} or {behind, ms now, the last line's number}.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last = 0
local stored = redis.call('HGET', KEYS[1] .. 'ends', ARGV[1])
if stored then
  last = tonumber(string.match(stored, '^(%d+) '))
end
if last ~= tonumber(ARGV[2]) then
  return {'behind', now, last}
end
redis.call('UNLINK', KEYS[1] .. 'of:' .. ARGV[1])
redis.call('HDEL', KEYS[1] .. 'ends', ARGV[1])
redis.call('ZREM', KEYS[1] .. 'names', ARGV[1])
return {'dropped', now, 0}
