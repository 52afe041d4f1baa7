-- What a service would write itself: it reserves the key, and completes it, each in a commit of its own. The same key,
-- answer and members as store_bench writes.
local insert = "INSERT IGNORE INTO plain (id, scope, operation, fingerprint, state, locked_until) VALUES" ..
  " (UNHEX(MD5(?)), 'tenant-17', 'POST /v1/payments', CONCAT(x'00000001', REPEAT(x'00', 32)), 'in_progress'," ..
  " NOW(3) + INTERVAL 60 SECOND)"
local update = "UPDATE plain SET state = 'completed', expires_at = NOW(3) + INTERVAL 24 HOUR, response_status = 201," ..
  " response_headers = '[[\"Content-Type\", \"application/json\"], [\"Location\", \"/v1/payments/pay_1\"]]'," ..
  " response_body = '{\"id\":\"pay_1\",\"amount\":1999,\"currency\":\"EUR\",\"status\":\"succeeded\"}'" ..
  " WHERE id = UNHEX(MD5(?)) AND state = 'in_progress'"

function thread_init()
  connection = sysbench.sql.driver():connect()
  reserve = connection:prepare(insert)
  complete = connection:prepare(update)
  key_of_reserve = reserve:bind_create(sysbench.sql.type.VARCHAR, 64)
  key_of_complete = complete:bind_create(sysbench.sql.type.VARCHAR, 64)
  reserve:bind_param(key_of_reserve)
  complete:bind_param(key_of_complete)
  next_key = 0
end

function event()
  next_key = next_key + 1
  local key = sysbench.tid .. "-" .. next_key
  key_of_reserve:set(key)
  reserve:execute()
  key_of_complete:set(key)
  complete:execute()
end

function thread_done()
  connection:disconnect()
end
