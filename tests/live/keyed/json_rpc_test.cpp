// Protocol §10 and §14: JSON-RPC calls, whose id is new with each retry.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/admin.hpp"
#include "support/async.hpp"
#include "support/scripted_live.hpp"

namespace idem::test {
namespace {

class JsonRpc : public Scripted {
 protected:
  void begin(const std::string& rule = "jsonrpc: true", std::vector<std::string> flags = {}) {
    const auto file = (dir_.path() / "idem.yaml").string();
    std::ofstream(file) << "routes: [{match: {path: /rpc}, fingerprint: {" << rule
                        << "}, respond_async: true}]\n";
    flags.insert(flags.end(), {"--config", file});
    start(
        [this](UpstreamConnection& connection) {
          while (connection.read_request()) {
            EXPECT_TRUE(!held_ || gate_.wait());
            if (!connection.write(answer_.get())) return;
          }
        },
        flags);
    answers(R"({"jsonrpc": "2.0", "result": {"paid": 1.50}, "id": 1})");
  }
  void answers(const std::string& body, const std::string& fields = {},
               const std::string& type = "application/json") {
    answer_.set(fmt::format("HTTP/1.1 200 OK\r\nContent-Type: {}\r\n{}Content-Length: {}\r\n\r\n{}",
                            type, fields, body.size(), body));
  }

  static Request call(const std::string& key, const std::string& id) {
    auto request =
        charge(key, "", R"({"jsonrpc":"2.0","method":"pay","params":[150],"id":)" + id + "}");
    request.target = "/rpc";
    return request;
  }
  static void expect_replayed(const Response& answer, const std::string& body) {
    EXPECT_EQ(answer.status, 200) << answer.raw;
    EXPECT_EQ(answer.get("Idempotent-Replayed"), "true");
    EXPECT_EQ(answer.body, body);
  }

  SharedText answer_;
  Gate gate_;
  bool held_ = false;
};

TEST_F(JsonRpc, S14_a_retry_gets_the_answer_under_its_own_id) {
  begin();
  const auto first = ask(call("k", "1"));
  ASSERT_EQ(first.body, R"({"jsonrpc": "2.0", "result": {"paid": 1.50}, "id": 1})");
  EXPECT_FALSE(first.get("Idem-Rpc"));
  for (const std::string id : {"2", R"("a-b")", "2", R"("a-b")", "2"}) {  // Also from memory.
    const auto retry = ask(call("k", id));
    expect_replayed(retry, R"({"jsonrpc": "2.0", "result": {"paid": 1.50}, "id": )" + id + "}");
    EXPECT_EQ(retry.get("Content-Length"), std::to_string(retry.body.size()));
    EXPECT_FALSE(retry.get("Idem-Rpc"));
  }
  expect_replayed(ask(call("k", "1.0")), first.body);
  expect_replayed(ask(call("k", "1")), first.body);
  EXPECT_EQ(upstream_->requests(), 1);
}

TEST_F(JsonRpc, S14_other_answers_go_out_as_they_are_stored) {
  begin();
  const std::string plain = R"({"jsonrpc":"2.0","result":0,"id":1})";
  struct Stored {
    std::string body;
    std::string fields = {};
    std::string type = "application/json";
  };
  int number = 0;
  for (const Stored& stored :
       {Stored{plain, "Content-Digest: sha-256=:AAAA:\r\n"}, Stored{plain, "Signature: a=:AA:\r\n"},
        Stored{plain, "ETag: \"1\"\r\n"}, Stored{plain, "", "text/plain"},
        Stored{"[" + plain + "]"}, Stored{R"({"jsonrpc":"2.0","result":0,"id":9})"},
        Stored{R"({"jsonrpc":"2.0","result":0,"id":1,"signature":"x"})"},
        Stored{R"({"jsonrpc":"2.0","result":0,"id":1)"}, Stored{"ok"},
        Stored{R"({"jsonrpc":"2.0","result":")" + std::string(300'000, 'x') + R"(","id":1})"}}) {
    const std::string key = "k" + std::to_string(number++);
    answers(stored.body, stored.fields, stored.type);
    ASSERT_EQ(ask(call(key, "1")).status, 200);
    expect_replayed(ask(call(key, "2")), stored.body);
  }
  EXPECT_EQ(upstream_->requests(), number);
}

TEST_F(JsonRpc, S10_the_id_counts_in_all_that_is_no_single_call) {
  begin();
  int number = 0;
  for (const std::string body :
       {R"([{{"jsonrpc":"2.0","method":"pay","id":{}}}])", R"({{"method":"pay","id":{}}})"}) {
    Request request = call("k" + std::to_string(number++), "1");
    request.body = fmt::format(fmt::runtime(body), 1);
    ASSERT_EQ(ask(request).status, 200);
    request.body = fmt::format(fmt::runtime(body), 2);
    EXPECT_TRUE(is_problem(ask(request), 422, "key_reused"));
  }
}

TEST_F(JsonRpc, S14_to_exclude_the_id_alone_rewrites_no_answer) {
  begin("exclude: [/id]");
  const auto first = ask(call("k", "1"));
  expect_replayed(ask(call("k", "2")), first.body);
  EXPECT_EQ(upstream_->requests(), 1);
}

TEST_F(JsonRpc, S07_S14_a_waiter_gets_its_own_id) {
  held_ = true;
  begin();
  Connection first(gateway_->address());
  first.send(call("k", "1"));
  ASSERT_TRUE(upstream_->wait_for_requests(1));
  Connection second(gateway_->address());
  Connection third(gateway_->address());
  second.send(with(call("k", "2"), "Prefer", "wait=30"));
  third.send(with(call("k", "3"), "Prefer", "wait=30"));
  until_waiting(gateway_->admin(), 2);
  gate_.open();
  EXPECT_EQ(first.read_response().body, R"({"jsonrpc": "2.0", "result": {"paid": 1.50}, "id": 1})");
  expect_replayed(second.read_response(),
                  R"({"jsonrpc": "2.0", "result": {"paid": 1.50}, "id": 2})");
  expect_replayed(third.read_response(),
                  R"({"jsonrpc": "2.0", "result": {"paid": 1.50}, "id": 3})");
  EXPECT_EQ(upstream_->requests(), 1);
}

TEST_F(JsonRpc, S14_a_stored_calls_answer_is_given_under_the_id_of_the_retry) {
  begin();
  const auto accepted = ask(with(call("k", "1"), "Prefer", "respond-async"));
  ASSERT_EQ(accepted.status, 202) << accepted.raw;
  EXPECT_EQ(state_when_ended(gateway_->address(), accepted)["state"].string, "completed");
  expect_replayed(ask(call("k", "2")), R"({"jsonrpc": "2.0", "result": {"paid": 1.50}, "id": 2})");
  EXPECT_EQ(upstream_->requests(), 1);
}

// The mark lies in the store, beside the answer.
TEST_F(JsonRpc, S14_another_gateway_gives_it_under_the_id_of_the_retry) {
  begin();
  ASSERT_EQ(ask(call("k", "1")).status, 200);
  begin();
  expect_replayed(ask(call("k", "2")), R"({"jsonrpc": "2.0", "result": {"paid": 1.50}, "id": 2})");
  EXPECT_EQ(upstream_->requests(), 0);
}

}  // namespace
}  // namespace idem::test
