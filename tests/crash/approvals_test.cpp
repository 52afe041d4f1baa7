#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "support/admin.hpp"
#include "support/back_off.hpp"
#include "support/jobs.hpp"
#include "support/shared_store.hpp"

/// Of two processes that make one approved decision, the first of which was thought dead.
namespace idem::test {
namespace {

class StoppedDeciders : public testing::Test {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem-crash");
    store_ = std::make_unique<SharedStoreUrl>("postgres");
    for (const auto* const name : {"ada", "bob"}) {
      const auto made = run_program(built_program("idem"),
                                    {"admin", "token", name, "--role", "operator", "--tokens-file",
                                     (dir_.path() / "tokens").string(), "--json"});
      ASSERT_EQ(made.exit_code, 0) << made.output;
      tokens_[name] = parse_json(made.output).value_or(Json{})["token"].string;
    }
  }
  std::unique_ptr<Gateway> start(const std::string& stops_at) {
    GatewayOptions options{
        .upstream = provider_.address(),
        .store_url = store_->url(),
        .flags = {"--admin-tokens", (dir_.path() / "tokens").string(), "--approvals-resolve", "2"},
        .environment = {"IDEM_STOP_AT=" + stops_at},
        .program = "idem-crash"};
    auto gateway = std::make_unique<Gateway>(std::move(options));
    EXPECT_TRUE(gateway->running()) << gateway->process().output();
    return gateway;
  }
  Response send(const std::string& admin, const std::string& who, std::string method,
                std::string target, std::string body = {}) {
    Request request{.method = std::move(method),
                    .target = std::move(target),
                    .fields = {{"Host", admin}, {"Authorization", "Bearer " + tokens_.at(who)}},
                    .body = std::move(body)};
    if (request.method == "POST") request.fields.push_back({"Content-Type", "application/json"});
    return send_once(admin, request);
  }

  TempDir dir_;
  Provider provider_;
  std::unique_ptr<SharedStoreUrl> store_;
  std::map<std::string, std::string> tokens_;
};

// Both have looked, and nothing was decided; then one decides, and the other one is refused by the
// store.
TEST_F(StoppedDeciders, V29_the_refusal_of_one_does_not_end_what_the_other_has_decided) {
  const auto first = start("resolve_before_commit:3");  // Behind the order and the approval.
  const auto other = start("resolve_before_commit:2");  // Behind the second approval.
  make_unknown(first->address(), "k", 1);
  const auto page = send(first->admin(), "ada", "GET", "/v1/keys?state=unknown");
  const Json record = parse_json(page.body).value_or(Json{})["keys"].items.at(0);
  const std::string path = "/v1/keys/" + record["ref"].string;
  const auto asked =
      send(first->admin(), "ada", "POST", path + "/resolve",
           fmt::format(R"({{"as":"completed","fence":{},"evidence":"e","reason":"r",)"
                       R"("response":{{"status":201,"body_b64":"Zm91bmQ="}}}})",
                       record["fence"].integer));
  ASSERT_EQ(asked.status, 202) << asked.raw;
  const std::string id = parse_json(asked.body).value_or(Json{})["approval"].string;
  const auto approve = [&](Gateway& gateway) {
    return send(gateway.admin(), "bob", "POST", "/v1/approvals/" + id + "/approve",
                R"({"reason":"seen"})");
  };
  Response answers[2];
  std::thread at_first([&] { answers[0] = approve(*first); });
  const bool is_first_stopped = first->process().wait_stopped();
  std::thread at_other([&] {
    // Until the first one is thought dead.
    const auto until = std::chrono::steady_clock::now() + patience;
    do {
      back_off();
      answers[1] = approve(*other);
    } while (answers[1].status == 409 && std::chrono::steady_clock::now() < until);
  });
  const bool is_other_stopped = other->process().wait_stopped();
  first->carry_on();
  at_first.join();
  other->carry_on();
  at_other.join();
  EXPECT_TRUE(is_first_stopped && is_other_stopped);
  for (const Response& answer : answers) {
    EXPECT_EQ(answer.status, 200) << answer.raw;
    EXPECT_EQ(parse_json(answer.body).value_or(Json{})["state"].string, "decided") << answer.raw;
  }
  const auto approval = send(first->admin(), "ada", "GET", "/v1/approvals/" + id);
  EXPECT_EQ(parse_json(approval.body).value_or(Json{})["state"].string, "decided") << approval.raw;
  const auto shown = send(first->admin(), "ada", "GET", path);
  const Json now = parse_json(shown.body).value_or(Json{});
  EXPECT_EQ(now["state"].string, "completed");
  int applied = 0;
  for (const Json& line : now["evidence"].items) applied += line["applied"].boolean ? 1 : 0;
  EXPECT_EQ(applied, 1);
}

}  // namespace
}  // namespace idem::test
