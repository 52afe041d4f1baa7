-- Writes one record, with all that goes with it, on the condition that it lies there as it was read.
-- The state machine is not here: the one who asks has made the step (src/core/transitions), and
-- this is the atomic moment in which it counts or does not.
--
-- KEYS[1]   the bucket: what all of its keys begin with. The others are made from it, so that they
--           have its hash tag and lie in its slot.
-- ARGV  1   the moment for which the step was made, ms; 2 how far it may be off, ms, empty: at will
--       3   the generation that a reserve names records by, as open.lua has it; empty: it does not
--           matter
--       4   the record's id, 16 bytes
--       5   version of what was read, 16 bytes; empty: there was nothing
--       6   what is to lie there, its version first
--       7   six letters:  record  w write, x erase, k keep
--                         answer  w write, x erase, k keep
--                         request w write, x erase, k keep
--                         a: told of another record, also its answer, if it is completed
--                         q: and its request
--                         f: an attempt begins
--       8   answer; 9 request
--      10   fence of what is written or erased
--      11   the set it lies in, empty: none; 12 the one it is to lie in; 13 its place there
--      14   where it stands among the pending: a place; empty: as before; '-': nowhere
--      15   how many counters follow, each with its change (u:... are those of a scope's quota, which
--           lie apart); then lines for the evidence log
--
-- Answers {what, ms now, ...}: done; clock: the moment is off; generation, the bucket's; fence, the
-- last one of a record that is gone; other, the record, answer and request that lie there instead;
-- lost, 'record' where it was thrown away, 'bucket' where nobody knows.
local bucket, id = KEYS[1], ARGV[4]

-- A record that is not there was never made, or was reaped, or was thrown away by an eviction policy
-- that somebody has set since. Each record stands in one of three sets for as long as it lives, and
-- the bucket counts what stands in each: what is thrown away is whole keys, and then they differ.
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
local lies = redis.call('GET', key)
local value, ops = ARGV[6], ARGV[7]
local op = string.sub(ops, 1, 1)
local version = lies and string.sub(lies, 1, 16) or ''
if op == 'w' and version == string.sub(value, 1, 16) then
  return {'done', now}  -- Asked before, and the reply was lost. Before all else: it was done.
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

if not lies then
  local lost = what_is_lost()
  if lost then
    return {'lost', now, lost}
  end
end
if version ~= ARGV[5] then
  if not lies then
    return {'other', now, false}
  end
  -- Behind the version lie the answer's status (2 bytes) and the record: its version and state.
  local answer, request = false, false
  if string.sub(ops, 4, 4) == 'a' and string.byte(lies, 20) == 3 then
    answer = redis.call('GET', bucket .. 'a' .. id)
  end
  if string.sub(ops, 5, 5) == 'q' then
    request = redis.call('GET', bucket .. 'q' .. id)
  end
  return {'other', now, lies, answer, request}
end

local fence = tonumber(ARGV[10])
-- Fences come from the clock; should it have gone back, one that was granted is not granted again.
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
  elseif part == 'x' and op == 'w' and lies then
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
