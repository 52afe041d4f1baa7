#include "http.hpp"

#include <idem/fingerprint.hpp>

// Step 1 of docs/tutorial.md: a naive payment. Every retry pays again.

idem::Response pay(idem::Transactions& database, const std::string& provider,
                   const idem::Request& request) {
  const std::string id = "pay_" + idem::to_hex(idem::random_token().bytes);
  idem::Response failed{502, {}, "the payment failed\n"};
  if (!database.run("INSERT INTO payments VALUES ($1, $2, 'created', NULL)", {id, request.body})) {
    return failed;
  }
  const tutorial::Reply reply = tutorial::post(provider + "/charges", request.body);
  if (reply.status != 201) return failed;
  if (!database.run("UPDATE payments SET state = 'finished', charge = $2 WHERE id = $1",
                    {id, reply.body})) {
    return failed;
  }
  return {201, {{"Location", "/payments/" + id}}, "{\"id\":\"" + id + "\"}\n"};
}

int main(int count, char** given) {
  const tutorial::Words words = tutorial::words_of(count, given);
  const auto engine = tutorial::open_engine(words);
  return tutorial::serve(*engine, words.port, {{"/payments", [&](const idem::Request& request) {
                                                  return pay(*engine->transactions(),
                                                             words.provider, request);
                                                }}});
}
