-- Appends a line to a journal, on the condition that its writer knows the last one.
--
-- KEYS[1]   the beginning of all journals' keys
-- ARGV  1   the journal's name
--       2   the number of its last line, as the writer knows it; 0: none
--       3   the line
--       4   its moment, ms; empty: the server's
--
-- Answers {appended, ms now, the line's number, its moment}, or {behind, ms now, the last line's
-- number}, or {lost, ms now, the last line's number}: the server has evicted the lines.
local name, ends = ARGV[1], KEYS[1] .. 'ends'
local lines = KEYS[1] .. 'of:' .. name
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last, bytes = 0, 0
local stored = redis.call('HGET', ends, name)
if stored then
  local first, second = string.match(stored, '^(%d+) (%d+)$')
  last, bytes = tonumber(first), tonumber(second)
end
if redis.call('LLEN', lines) ~= last then
  return {'lost', now, last}
end
if last ~= tonumber(ARGV[2]) then
  return {'behind', now, last}
end
local seq = string.format('%.0f', last + 1)
local moment = ARGV[4]
if moment == '' then
  moment = string.format('%.0f', now)
end
-- It shows damage; this is not a signature.
local sum = redis.sha1hex(name .. ' ' .. seq .. ' ' .. moment .. ' ' .. ARGV[3])
redis.call('RPUSH', lines, moment .. ' ' .. string.sub(sum, 1, 16) .. ' ' .. ARGV[3])
redis.call('HSET', ends, name, seq .. ' ' .. string.format('%.0f', bytes + #ARGV[3]))
redis.call('ZADD', KEYS[1] .. 'names', 0, name)
return {'appended', now, last + 1, moment}
