#include "http.hpp"

// Step 2 of docs/tutorial.md: a guard around the handler. It runs once for each key.

idem::Outcome pay(idem::Transactions& database, const std::string& provider,
                  const idem::Request& request, const idem::Execution& run) {
  const std::string id = "pay_" + idem::to_hex(run.id().bytes);  // The same at every attempt.
  const auto made = database.run(
      "INSERT INTO payments VALUES ($1, $2, 'created', NULL) ON CONFLICT (id) DO NOTHING",
      {id, request.body});
  if (!made) return idem::NotExecuted{{503, {}, "try again\n"}};
  const tutorial::Reply reply = tutorial::post(provider + "/charges", request.body);
  if (!reply.was_sent) return idem::NotExecuted{{503, {}, "try again\n"}};
  if (reply.status == 402) return idem::Response{402, {}, "declined\n"};
  if (reply.status != 201) return idem::OutcomeUnknown{"charge_result_unknown"};
  const auto noted = database.run(
      "UPDATE payments SET state = 'finished', charge = $2 WHERE id = $1", {id, reply.body});
  if (!noted) return idem::OutcomeUnknown{"the_charge_was_not_noted"};
  return idem::Response{201, {{"Location", "/payments/" + id}}, "{\"id\":\"" + id + "\"}\n"};
}

int main(int count, char** given) {
  const tutorial::Words words = tutorial::words_of(count, given);
  const auto engine = tutorial::open_engine(words);
  // A short lease, for trying things out.
  idem::Guard guard(*engine, {.operation = "create-payment", .lease = std::chrono::seconds(5)});
  const auto payments = [&](const idem::Request& request) {
    return guard.serve(request, [&](const idem::Request& asked, const idem::Execution& run) {
      return pay(*engine->transactions(), words.provider, asked, run);
    });
  };
  return tutorial::serve(*engine, words.port, {{"/payments", payments}});
}
