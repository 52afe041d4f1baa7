#include "http.hpp"

// Step 3 of docs/tutorial.md: the rows and the answer are one commit.

idem::Outcome pay(const std::string& provider, const idem::Request& request, idem::Execution& run) {
  const tutorial::Reply reply = tutorial::post(provider + "/charges", request.body);
  if (!reply.was_sent) return idem::NotExecuted{{503, {}, "try again\n"}};
  if (reply.status == 402) return idem::Response{402, {}, "declined\n"};
  if (reply.status != 201) return idem::OutcomeUnknown{"charge_result_unknown"};
  return run.commit([&](idem::Transaction& tx) -> idem::Outcome {
    const std::string id = "pay_" + idem::to_hex(tx.record_id().bytes);
    tx.run("INSERT INTO payments VALUES ($1, $2, 'finished', $3)", {id, request.body, reply.body});
    return idem::Response{201, {{"Location", "/payments/" + id}}, "{\"id\":\"" + id + "\"}\n"};
  });
}

// It calls no other service, so reserve, rows and answer can be one commit.
idem::Outcome archive(const idem::Request& request, idem::Transaction& tx) {
  const idem::SqlRows rows = tx.run(
      "UPDATE payments SET state = 'archived' WHERE id = $1 AND state = 'finished' RETURNING id",
      {request.body});
  if (rows.empty()) return idem::Response{409, {}, "there is no such payment to archive\n"};
  return idem::Response{200, {}, "archived\n"};
}

int main(int count, char** given) {
  const tutorial::Words words = tutorial::words_of(count, given);
  const auto engine = tutorial::open_engine(words);
  const auto lease = std::chrono::seconds(5);  // Short, for trying things out.
  idem::Guard payments(*engine, {.operation = "create-payment", .lease = lease});
  idem::Guard archives(*engine, {.operation = "archive-payment", .lease = lease});
  const auto on_payment = [&](const idem::Request& request) {
    return payments.serve(request, [&](const idem::Request& asked, idem::Execution& run) {
      return pay(words.provider, asked, run);
    });
  };
  const auto on_archive = [&](const idem::Request& request) {
    return archives.serve_in_transaction(
        request, [&](idem::Transaction& tx) { return archive(request, tx); });
  };
  return tutorial::serve(*engine, words.port,
                         {{"/payments", on_payment}, {"/archive", on_archive}});
}
