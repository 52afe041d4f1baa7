-- Reads one record and what goes with it, as of one moment.
--
-- KEYS[1]   the bucket
-- ARGV  1   the generation that a reserve names records by, as open.lua has it; empty: it does not
--           matter
--       2   the record's id
--       3   letters: a its answer, if it is completed; q its request; e its evidence log
--
-- Answers {found, ms now, record, answer, request, log}, or {generation, ms now, the bucket's}.
local bucket, id, parts = KEYS[1], ARGV[2], ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[1] ~= '' then
  local generation = redis.call('HGET', bucket .. 'meta', 'generation')
  if generation ~= ARGV[1] then
    return {'generation', now, generation}
  end
end
local record = redis.call('GET', bucket .. 'r' .. id)
local answer, request, log = false, false, {}
if record and string.find(parts, 'a', 1, true) and string.byte(record, 20) == 3 then
  answer = redis.call('GET', bucket .. 'a' .. id)
end
if record and string.find(parts, 'q', 1, true) then
  request = redis.call('GET', bucket .. 'q' .. id)
end
if string.find(parts, 'e', 1, true) then
  log = redis.call('LRANGE', bucket .. 'e' .. id, 0, -1)
end
return {'found', now, record, answer, request, log}
