-- Reads the names of journals in order.
--
-- KEYS[1]   the beginning of all journals' keys
-- ARGV  1   where to begin, as ZRANGEBYLEX has it; 2 the most names
--
-- Answers {names, ms now, names and ends in turn}.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
for _, name in ipairs(redis.call('ZRANGEBYLEX', KEYS[1] .. 'names', ARGV[1], '+', 'LIMIT', 0, ARGV[2])) do
  found[#found + 1] = name
  found[#found + 1] = redis.call('HGET', KEYS[1] .. 'ends', name)
end
return {'names', now, found}
