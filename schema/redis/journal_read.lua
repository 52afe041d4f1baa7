-- Reads lines of a journal, as of one moment.
--
-- KEYS[1]   the beginning of all journals' keys
-- ARGV  1   the journal's name
--       2   the number of the line behind which to begin
--       3   the most lines; 4 the bytes behind which to stop
--
-- Answers {lines, ms now, the last line's number, lines as journal_append.lua wrote them}, or {lost, ms
-- now, the last line's number}.
local lines = KEYS[1] .. 'of:' .. ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last = 0
local stored = redis.call('HGET', KEYS[1] .. 'ends', ARGV[1])
if stored then
  last = tonumber(string.match(stored, '^(%d+) '))
end
if redis.call('LLEN', lines) ~= last then
  return {'lost', now, last}
end
local found, bytes, at = {}, 0, tonumber(ARGV[2])
local most, most_bytes = tonumber(ARGV[3]), tonumber(ARGV[4])
while at < last and #found < most do
  for _, line in ipairs(redis.call('LRANGE', lines, at, at + 15)) do
    local _, head = string.find(line, '^%d+ %x+ ')
    bytes = bytes + #line - (head or 0)
    if #found >= most or (#found > 0 and bytes > most_bytes) then
      return {'lines', now, last, found}
    end
    found[#found + 1] = line
    at = at + 1
  end
end
return {'lines', now, last, found}
