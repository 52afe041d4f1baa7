-- Writes a cache entry about a record that another store decides, unless there is a newer entry.
-- Answers 1, or 0 if the newer entry stays.
--
-- KEYS[1]   the entry's key
-- ARGV  1   the entry: its first 41 characters are digits that order entries by age
--       2   its lifetime, ms
local current = redis.call('GET', KEYS[1])
if current and string.sub(current, 1, 41) > string.sub(ARGV[1], 1, 41) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
