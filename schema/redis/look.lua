-- Reads one record with its answer, request and evidence log, as of one moment.
--
-- KEYS[1]   the bucket
-- ARGV  1   the generation by which a reserve names records, as open.lua writes it; empty: any
--       2   the record's id
--       3   letters: a its answer, if it is completed; q its request; e its evidence log
--
-- Answers {found, ms now, record, answer, request, log}, or {generation, ms now, the bucket's},
-- or {lost, ms now, as in commit.lua}.
local bucket, id, parts = KEYS[1], ARGV[2], ARGV[3]

-- As in commit.lua.
local function what_is_lost()
  local n = redis.call('HMGET', bucket .. 'meta', 'in:1', 'in:2', 'in:3', 'in:4', 'in:5', 'in:6')
  local counted = {
    ['due:sweep'] = (n[1] or 0) + (n[2] or 0),
    ['due:reap'] = (n[3] or 0) + (n[4] or 0) + (n[6] or 0),
    ['unknown'] = (n[5] or 0) + 0,
  }
  local lost = nil
  for set, count in pairs(counted) do
    if redis.call('ZSCORE', bucket .. set, id) then
      return 'record'
    end
    if redis.call('ZCARD', bucket .. set) ~= count then
      lost = 'bucket'
    end
  end
  return lost
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[1] ~= '' then
  local generation = redis.call('HGET', bucket .. 'meta', 'generation')
  if generation ~= ARGV[1] then
    return {'generation', now, generation}
  end
end
local record = redis.call('GET', bucket .. 'r' .. id)
if not record then
  local lost = what_is_lost()
  if lost then
    return {'lost', now, lost}
  end
end
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
