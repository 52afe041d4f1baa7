-- The keyed or unkeyed request that wrk sends, by KIND:
--   first    a fresh key each time          replay  one key again and again
--   mixed    a fresh key, and once in ten times one of those a while back, with its body
--   unkeyed  a GET without a key
local kind = os.getenv("KIND")
local counter, prefix = 0, ""
local head = { ["X-Tenant-Id"] = "bench", ["Content-Type"] = "application/json" }
local body = '{"amount":4200,"currency":"eur","source":"tok_visa","description":"order 1"}'
-- Far enough back that it has been answered.
local answered = 2000

function init(args)
  math.randomseed(os.time() + (tonumber(args[1]) or 0))
  prefix = string.format("%08x%08x-", math.random(0, 2^31 - 1), math.random(0, 2^31 - 1))
end

function request()
  if kind == "unkeyed" then return wrk.format("GET", "/v1/payments", head) end
  local number = counter
  if kind == "mixed" and counter > 2 * answered and math.random(10) == 1 then
    number = counter - answered - math.random(answered)
  elseif kind ~= "replay" then
    counter = counter + 1
    number = counter
  end
  head["Idempotency-Key"] = (kind == "replay" and os.getenv("REPLAY_KEY") or prefix) .. number
  return wrk.format("POST", "/v1/payments", head, body)
end
