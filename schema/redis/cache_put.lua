-- Keeps what is known of a record that another store decides about, unless something newer is kept.
--
-- KEYS[1]   where
-- ARGV  1   the entry: its first 41 characters are digits and say how new it is
--       2   for how long, ms
local lies = redis.call('GET', KEYS[1])
if lies and string.sub(lies, 1, 41) > string.sub(ARGV[1], 1, 41) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
