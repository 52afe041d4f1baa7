#include "http.hpp"

#include <idem/outbox.hpp>
#include <idem/phases.hpp>
#include <idem/relay.hpp>
#include <idem/webhook.hpp>

#include <cstdio>

// Step 5 of docs/tutorial.md: the outbox. A receipt leaves if and only if the payment is there.

std::string id_of(const idem::PhaseRun& run) { return "pay_" + idem::to_hex(run.id.bytes); }

idem::PhaseEnd create(const idem::PhaseRun& run, idem::Transaction& tx) {
  tx.run("INSERT INTO payments VALUES ($1, $2, 'created', NULL)", {id_of(run), run.request.body});
  return idem::NextPhase{};
}

idem::CallEnd charge(const std::string& provider, const idem::PhaseCall& call) {
  const tutorial::Reply reply = tutorial::post(provider + "/charges", call.request.body, call.key);
  if (!reply.was_sent) return idem::CallNotDone{"the provider cannot be reached"};
  if (reply.status == 201) return idem::CallAnswered{reply.body};
  if (reply.status == 402) return idem::CallAnswered{};  // Declined, for good.
  return idem::CallAmbiguous{"the provider answered " + std::to_string(reply.status)};
}

idem::PhaseEnd note_charge(const idem::PhaseRun& run, idem::Transaction& tx) {
  const bool declined = run.called.answer.empty();
  tx.run("UPDATE payments SET state = $2, charge = $3 WHERE id = $1",
         {id_of(run), declined ? "declined" : "charged", run.called.answer});
  if (declined) return idem::Response{402, {}, "declined\n"};
  return idem::NextPhase{};
}

idem::PhaseEnd finish(const idem::PhaseRun& run, idem::Transaction& tx) {
  const std::string id = id_of(run);
  tx.run("UPDATE payments SET state = 'finished' WHERE id = $1", {id});
  tx.enqueue({.destination = "receipts",
              .type = "payment.finished",
              .payload = "{\"payment\":\"" + id + "\"}",
              .aggregate_type = "payment",
              .aggregate_id = id});
  return idem::Response{201, {{"Location", "/payments/" + id}}, "{\"id\":\"" + id + "\"}\n"};
}

std::vector<idem::Phase> payment_phases(const std::string& provider) {
  idem::ForeignCall call;
  call.send = [provider](const idem::PhaseCall& one) { return charge(provider, one); };
  call.timeout = std::chrono::seconds(2);
  call.repetition.deduplicates = std::chrono::hours(24);  // This provider keeps keys so long.
  return {{.name = "created", .work = create},
          {.name = "charged", .call = std::move(call), .work = note_charge},
          {.name = "finished", .work = finish}};
}

// The provider of the tutorial has an inbox, which plays the receiver of receipts.
idem::Destination receipts(const tutorial::Words& words) {
  auto send = idem::webhook({.url = words.provider + "/inbox", .secrets = {words.secret}});
  if (!send) std::fprintf(stderr, "%s\n", send.error().c_str()), std::exit(1);
  idem::Destination to{.name = "receipts", .send = std::move(*send)};
  to.timeout = std::chrono::seconds(2);
  to.repetition.deduplicates = std::chrono::hours(24);  // It keeps webhook-ids so long.
  return to;
}

// Sends dead letters once more, after an operator has found out why they died.
idem::Response redrive(idem::Engine& engine) {
  const auto done = idem::Outbox(*engine.transactions()).redrive({.reason = "receiver repaired"});
  if (!done) return {503, {}, done.error() + "\n"};
  std::string text;
  for (const idem::Ordered& one : *done) text += one.verdict + " " + one.id + "\n";
  return {200, {}, text};
}

int main(int count, char** given) {
  const tutorial::Words words = tutorial::words_of(count, given);
  const auto engine = tutorial::open_engine(words);
  idem::PhasedOptions options;
  options.guard.operation = "create-payment";
  options.guard.lease = std::chrono::seconds(5);  // Short, for trying things out.
  idem::PhasedGuard guard(*engine, options, payment_phases(words.provider));
  idem::RelayOptions relaying;
  relaying.lease = std::chrono::seconds(5);
  const idem::Relay relay(*engine, {receipts(words)}, relaying);
  const auto payments = [&](const idem::Request& request) { return guard.serve(request); };
  return tutorial::serve(
      *engine, words.port,
      {{"/payments", payments}, {"/redrive", [&](const auto&) { return redrive(*engine); }}});
}
