-- Writes one record with its answer, request and counters, on the condition that it has not changed
-- since it was read. The state machine is not here: the caller has made the step
-- (src/core/transitions), and this script applies it as a whole or refuses it.
--
-- KEYS[1]   the bucket: the beginning of all its keys. The script makes the others from it, so that
--           they have its hash tag and are in its slot.
-- ARGV  1   the step's moment, ms; 2 the largest difference to the server's clock, ms; empty: any
--       3   the generation by which a reserve names records, as open.lua writes it; empty: any
--       4   the record's id, 16 bytes
--       5   the version that was read, 16 bytes; empty: there was no record
--       6   the new record, its version first
--       7   six letters:  record  w write, x erase, k keep
--                         answer  w write, x erase, k keep
--                         request w write, x erase, k keep
--                         a: a reply 'other' has the answer, too, if the record is completed
--                         q: a reply 'other' has the request, too
--                         f: an attempt begins
--       8   answer; 9 request
--      10   fence of the written or erased record
--      11   the set of the record before, empty: none; 12 its new set; 13 its score there
--      14   its score in the set of the pending; empty: as before; '-': removed
--      15   the number of counters that follow, each with its change (u:... are a scope's usage, in a
--           hash of their own); then lines for the evidence log
--
-- Answers {done, ms now}, or {clock, ms now}: the moment differs too much, or {generation, ms now, the
-- bucket's}, or {fence, ms now, the last one of an erased record}, or {other, ms now, the current
-- record, its answer, its request}, or {lost, ms now, 'record'}: the server has evicted this record, or
-- {lost, ms now, 'bucket'}: it has evicted some record of the bucket.
local bucket, id = KEYS[1], ARGV[4]

-- A missing record was never made, or was reaped, or was evicted by a policy that was set later. Each
-- record is in one of three sets for as long as it lives, and the bucket counts the members of each. An
-- eviction removes whole keys, and then set and counter differ.
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
local key = bucket .. 'r' .. id
local current = redis.call('GET', key)
local value, ops = ARGV[6], ARGV[7]
local op = string.sub(ops, 1, 1)
local version = current and string.sub(current, 1, 16) or ''
if op == 'w' and version == string.sub(value, 1, 16) then
  return {'done', now}  -- A repeat: the first reply was lost. Checked first, because it was done.
end

local slack = tonumber(ARGV[2])
if slack and math.abs(now - tonumber(ARGV[1])) > slack then
  return {'clock', now}
end

local meta = bucket .. 'meta'
local is_attempt = string.sub(ops, 6, 6) == 'f'
local generation, last_fence
if is_attempt or ARGV[3] ~= '' then
  generation, last_fence = unpack(redis.call('HMGET', meta, 'generation', 'last_fence'))
end
if ARGV[3] ~= '' and generation ~= ARGV[3] then
  return {'generation', now, generation}
end
-- The store's copy takes its place (idem store copy), or a change of the identity may end so: no attempt
-- begins here.
if is_attempt and generation and (generation == 'closed' or string.sub(generation, 1, 7) == 'copied:') then
  return {'generation', now, generation}
end

if not current then
  local lost = what_is_lost()
  if lost then
    return {'lost', now, lost}
  end
end
if version ~= ARGV[5] then
  if not current then
    return {'other', now, false}
  end
  -- Behind the version are the answer's status (2 bytes) and the record: its format version and state.
  local answer, request = false, false
  if string.sub(ops, 4, 4) == 'a' and string.byte(current, 20) == 3 then
    answer = redis.call('GET', bucket .. 'a' .. id)
  end
  if string.sub(ops, 5, 5) == 'q' then
    request = redis.call('GET', bucket .. 'q' .. id)
  end
  return {'other', now, current, answer, request}
end

local fence = tonumber(ARGV[10])
-- Fences come from the clock; if it has gone back, this refuses a fence that was granted before.
if is_attempt and last_fence and tonumber(last_fence) >= fence then
  return {'fence', now, last_fence}
end

if op == 'w' then
  redis.call('SET', key, value)
elseif op == 'x' then
  redis.call('DEL', key, bucket .. 'a' .. id, bucket .. 'q' .. id)
  local last = redis.call('HGET', meta, 'last_fence')
  if not last or tonumber(last) < fence then
    redis.call('HSET', meta, 'last_fence', ARGV[10])
  end
end
for place, prefix in ipairs({'a', 'q'}) do
  local part = string.sub(ops, place + 1, place + 1)
  if part == 'w' then
    redis.call('SET', bucket .. prefix .. id, ARGV[7 + place])
  elseif part == 'x' and op == 'w' and current then
    redis.call('DEL', bucket .. prefix .. id)
  end
end

if op ~= 'k' then
  local from, to = ARGV[11], ARGV[12]
  if from ~= '' and from ~= to then
    redis.call('ZREM', bucket .. from, id)
  end
  if to ~= '' then
    redis.call('ZADD', bucket .. to, ARGV[13], id)
  end
  if ARGV[14] == '-' then
    redis.call('ZREM', bucket .. 'pending', id)
  elseif ARGV[14] ~= '' then
    redis.call('ZADD', bucket .. 'pending', ARGV[14], id)
  end
end

local at = 16
for _ = 1, tonumber(ARGV[15]) do
  local hash = meta
  if string.sub(ARGV[at], 1, 2) == 'u:' then
    hash = bucket .. 'usage'
  end
  if redis.call('HINCRBY', hash, ARGV[at], ARGV[at + 1]) <= 0 then
    redis.call('HDEL', hash, ARGV[at])
  end
  at = at + 2
end
for line = at, #ARGV do
  redis.call('RPUSH', bucket .. 'e' .. id, ARGV[line])
end
return {'done', now}
