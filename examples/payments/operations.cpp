#include "operations.hpp"

#include "json/value.hpp"
#include "json/writer.hpp"

namespace payments {

namespace json = idem::json;
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
  json::Writer body;
  body.begin_object();
  body.member("error", error);
  body.end_object();
  return json_response(status, body.take());
}

/// Of the request's body; a value without members if that is no JSON.
json::Value asked_in(const idem::Request& request) {
  return json::parse(request.body).value_or(json::Value());
}

std::string text_of(const json::Value& asked, std::string_view name) {
  const json::Value* const value = asked.find(name);
  const auto* const text = value != nullptr ? std::get_if<std::string>(&value->is) : nullptr;
  return text != nullptr ? *text : std::string();
}

/// In the currency's smallest unit; 0: missing or invalid.
std::int64_t amount_of(const json::Value& asked) {
  const json::Value* const value = asked.find("amount");
  const auto* const amount = value != nullptr ? std::get_if<std::int64_t>(&value->is) : nullptr;
  return amount != nullptr && *amount > 0 ? *amount : 0;
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
                  const std::string& about) {
  tx.enqueue({.destination = "receipts",
              .type = type,
              .payload = about,
              .aggregate_type = "payment",
              .aggregate_id = payment});
}

// ---- POST /payments ----

// Validates the request here, not before the guard: so the refusal is stored, and a retry gets the
// same answer at any time.
idem::PhaseEnd create_payment(const idem::PhaseRun& run, idem::Transaction& tx) {
  const json::Value asked = asked_in(run.request);
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
  json::Writer writer;
  writer.begin_object();
  writer.member("id", id);
  writer.member("amount", number(rows, 0));
  writer.member("currency", column(rows, 1));
  writer.member("charge", column(rows, 2));
  writer.end_object();
  const std::string payment = writer.take();
  send_receipt(tx, "payment.finished", id, payment);
  idem::Response answer = json_response(201, payment);
  answer.headers.push_back({"Location", "/payments/" + id});
  return answer;
}

std::vector<idem::Phase> payment_phases(const ProviderClient& provider) {
  // Every attempt must send the provider the same: the body is made of the request alone.
  auto charge = provider.call("/charges", [](const idem::PhaseCall& call) {
    const json::Value asked = asked_in(call.request);
    json::Writer body;
    body.begin_object();
    body.member("amount", amount_of(asked));
    body.member("currency", text_of(asked, "currency"));
    body.member("source", text_of(asked, "source"));
    body.member("reference", payment_id(call.id));
    body.end_object();
    return body.take();
  });
  return {{.name = "payment_created", .work = create_payment},
          {.name = "charged", .call = std::move(charge), .work = note_charge},
          {.name = "finished", .work = finish_payment}};
}

// ---- POST /refunds ----

idem::PhaseEnd create_refund(const idem::PhaseRun& run, idem::Transaction& tx) {
  const json::Value asked = asked_in(run.request);
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
  const json::Value asked = asked_in(run.request);
  const std::string payment = text_of(asked, "payment");
  if (refund.empty()) {
    tx.run("UPDATE refunds SET state = 'declined' WHERE id = $1", {refund_id(run.id)});
    tx.run("UPDATE payments SET refunded = refunded - $2 WHERE id = $1",
           {payment, amount_of(asked)});
    return problem(402, "the refund was declined");
  }
  tx.run("UPDATE refunds SET state = 'refunded', refund = $2 WHERE id = $1",
         {refund_id(run.id), refund});
  return idem::NextPhase{};
}

idem::PhaseEnd finish_refund(const idem::PhaseRun& run, idem::Transaction& tx) {
  const std::string id = refund_id(run.id);
  const json::Value asked = asked_in(run.request);
  const std::string payment = text_of(asked, "payment");
  tx.run("UPDATE refunds SET state = 'finished' WHERE id = $1", {id});
  json::Writer writer;
  writer.begin_object();
  writer.member("id", id);
  writer.member("payment", payment);
  writer.member("amount", amount_of(asked));
  writer.end_object();
  const std::string refund = writer.take();
  send_receipt(tx, "refund.finished", payment, refund);
  return json_response(201, refund);
}

std::vector<idem::Phase> refund_phases(const ProviderClient& provider) {
  auto refund = provider.call("/refunds", [](const idem::PhaseCall& call) {
    const json::Value asked = asked_in(call.request);
    json::Writer body;
    body.begin_object();
    body.member("payment", text_of(asked, "payment"));
    body.member("amount", amount_of(asked));
    body.member("reference", refund_id(call.id));
    body.end_object();
    return body.take();
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
  json::Writer body;
  body.begin_object();
  body.member("id", id);
  body.member("amount", number(*rows, 0));
  body.member("currency", column(*rows, 1));
  body.member("refunded", number(*rows, 2));
  body.member("state", column(*rows, 3));
  body.end_object();
  return json_response(200, body.take());
}

}  // namespace payments
