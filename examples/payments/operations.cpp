#include "operations.hpp"

#include <boost/json.hpp>

namespace payments {

namespace json = boost::json;
using idem::SqlRows;

std::optional<std::string> make_tables(idem::Engine& engine) {
  for (const char* const sql :
       {"CREATE TABLE IF NOT EXISTS payments (id TEXT PRIMARY KEY, tenant TEXT NOT NULL,"
        " amount BIGINT NOT NULL, currency TEXT NOT NULL, source TEXT NOT NULL,"
        " refunded BIGINT NOT NULL DEFAULT 0, state TEXT NOT NULL, charge TEXT)",
        "CREATE TABLE IF NOT EXISTS refunds (id TEXT PRIMARY KEY, payment TEXT NOT NULL,"
        " amount BIGINT NOT NULL, state TEXT NOT NULL, refund TEXT)"}) {
    if (const auto made = engine.transactions()->run(sql); !made) return made.error();
  }
  return std::nullopt;
}

std::string payment_id(const idem::RecordId& record) { return "pay_" + idem::to_hex(record.bytes); }
std::string refund_id(const idem::RecordId& record) { return "ref_" + idem::to_hex(record.bytes); }

idem::Response json_response(int status, const std::string& body) {
  return {status, {{"Content-Type", "application/json"}}, body};
}

idem::Response problem(int status, std::string_view error) {
  return json_response(status, json::serialize(json::object{{"error", error}}));
}

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

/// In the currency's smallest unit; 0: missing or invalid.
std::int64_t amount_of(const json::object& object) {
  const json::value* const value = object.if_contains("amount");
  if (value == nullptr || !value->is_int64() || value->as_int64() < 0) return 0;
  return value->as_int64();
}

json::object object_of(const idem::Request& request) {
  boost::system::error_code error;
  json::value parsed = json::parse(request.body, error);
  return !error && parsed.is_object() ? parsed.as_object() : json::object{};
}

std::string column(const SqlRows& rows, std::size_t at) {
  const auto* const text = std::get_if<std::string>(&rows.at(0).at(at));
  return text != nullptr ? *text : std::string();
}
std::int64_t number(const SqlRows& rows, std::size_t at) {
  const auto* const value = std::get_if<std::int64_t>(&rows.at(0).at(at));
  return value != nullptr ? *value : 0;
}

/// A receipt leaves if and only if the transaction commits; of one payment, in order.
void send_receipt(idem::Transaction& tx, const std::string& type, const std::string& payment,
                  const json::object& about) {
  tx.enqueue({.destination = "receipts",
              .type = type,
              .payload = json::serialize(about),
              .aggregate_type = "payment",
              .aggregate_id = payment});
}

// ---- POST /payments ----

// Validates the request here, not before the guard: so the refusal is stored, and a retry gets the
// same answer at any time.
idem::PhaseEnd create_payment(const idem::PhaseRun& run, idem::Transaction& tx) {
  const json::object asked = object_of(run.request);
  const std::int64_t amount = amount_of(asked);
  const std::string currency = text_of(asked, "currency");
  if (amount <= 0 || currency.size() != 3) {
    return problem(422, "amount (a positive whole number) and currency (three letters) are needed");
  }
  tx.run(
      "INSERT INTO payments (id, tenant, amount, currency, source, state)"
      " VALUES ($1, $2, $3, $4, $5, 'created')",
      {payment_id(run.id), run.request.scope, amount, currency, text_of(asked, "source")});
  return idem::NextPhase{};
}

idem::PhaseEnd note_charge(const idem::PhaseRun& run, idem::Transaction& tx) {
  const std::string charge = provider_id(run.called.answer);
  if (charge.empty()) {
    tx.run("UPDATE payments SET state = 'declined' WHERE id = $1", {payment_id(run.id)});
    return problem(402, "the card was declined");
  }
  tx.run("UPDATE payments SET state = 'charged', charge = $2 WHERE id = $1",
         {payment_id(run.id), charge});
  return idem::NextPhase{};
}

idem::PhaseEnd finish_payment(const idem::PhaseRun& run, idem::Transaction& tx) {
  const std::string id = payment_id(run.id);
  tx.run("UPDATE payments SET state = 'finished' WHERE id = $1", {id});
  const SqlRows rows = tx.run("SELECT amount, currency, charge FROM payments WHERE id = $1", {id});
  if (tx.failed() || rows.empty()) {
    tx.fail("the payment is gone");
    return idem::NextPhase{};
  }
  const json::object payment{{"id", id},
                             {"amount", number(rows, 0)},
                             {"currency", column(rows, 1)},
                             {"charge", column(rows, 2)}};
  send_receipt(tx, "payment.finished", id, payment);
  idem::Response answer = json_response(201, json::serialize(payment));
  answer.headers.push_back({"Location", "/payments/" + id});
  return answer;
}

std::vector<idem::Phase> payment_phases(const ProviderClient& provider) {
  // Every attempt must send the provider the same: the body is made of the request alone.
  auto charge = provider.call("/charges", [](const idem::PhaseCall& call) {
    json::object body = object_of(call.request);
    body["reference"] = payment_id(call.id);
    return json::serialize(body);
  });
  return {{.name = "payment_created", .work = create_payment},
          {.name = "charged", .call = std::move(charge), .work = note_charge},
          {.name = "finished", .work = finish_payment}};
}

// ---- POST /refunds ----

idem::PhaseEnd create_refund(const idem::PhaseRun& run, idem::Transaction& tx) {
  const json::object asked = object_of(run.request);
  const std::int64_t amount = amount_of(asked);
  const std::string payment = text_of(asked, "payment");
  const SqlRows known = tx.run("SELECT state FROM payments WHERE id = $1 AND tenant = $2",
                               {payment, run.request.scope});
  if (known.empty()) return problem(404, "there is no such payment");
  // Counted before the provider pays back: two refunds at once cannot exceed the payment.
  const SqlRows counted = tx.run(
      "UPDATE payments SET refunded = refunded + $2"
      " WHERE id = $1 AND state = 'finished' AND $2 > 0 AND refunded + $2 <= amount RETURNING id",
      {payment, amount});
  if (counted.empty()) return problem(409, "so much cannot be refunded");
  tx.run("INSERT INTO refunds (id, payment, amount, state) VALUES ($1, $2, $3, 'created')",
         {refund_id(run.id), payment, amount});
  return idem::NextPhase{};
}

idem::PhaseEnd note_refund(const idem::PhaseRun& run, idem::Transaction& tx) {
  const std::string refund = provider_id(run.called.answer);
  const std::string payment = text_of(object_of(run.request), "payment");
  if (refund.empty()) {
    tx.run("UPDATE refunds SET state = 'declined' WHERE id = $1", {refund_id(run.id)});
    tx.run("UPDATE payments SET refunded = refunded - $2 WHERE id = $1",
           {payment, amount_of(object_of(run.request))});
    return problem(402, "the refund was declined");
  }
  tx.run("UPDATE refunds SET state = 'refunded', refund = $2 WHERE id = $1",
         {refund_id(run.id), refund});
  return idem::NextPhase{};
}

idem::PhaseEnd finish_refund(const idem::PhaseRun& run, idem::Transaction& tx) {
  const std::string id = refund_id(run.id);
  const json::object asked = object_of(run.request);
  tx.run("UPDATE refunds SET state = 'finished' WHERE id = $1", {id});
  const json::object refund{
      {"id", id}, {"payment", text_of(asked, "payment")}, {"amount", amount_of(asked)}};
  send_receipt(tx, "refund.finished", text_of(asked, "payment"), refund);
  return json_response(201, json::serialize(refund));
}

std::vector<idem::Phase> refund_phases(const ProviderClient& provider) {
  auto refund = provider.call("/refunds", [](const idem::PhaseCall& call) {
    json::object body = object_of(call.request);
    body["reference"] = refund_id(call.id);
    return json::serialize(body);
  });
  return {{.name = "refund_created", .work = create_refund},
          {.name = "refunded", .call = std::move(refund), .work = note_refund},
          {.name = "finished", .work = finish_refund}};
}

// ---- GET /payments/{id} ----

idem::Response show_payment(idem::Engine& engine, const std::string& scope, const std::string& id) {
  const auto rows = engine.transactions()->run(
      "SELECT amount, currency, refunded, state FROM payments WHERE id = $1 AND tenant = $2",
      {id, scope});
  if (!rows) return problem(503, "try again");
  if (rows->empty()) return problem(404, "there is no such payment");
  return json_response(200, json::serialize(json::object{{"id", id},
                                                         {"amount", number(*rows, 0)},
                                                         {"currency", column(*rows, 1)},
                                                         {"refunded", number(*rows, 2)},
                                                         {"state", column(*rows, 3)}}));
}

}  // namespace payments
