#include <fmt/format.h>

#include <thread>

#include "support/admin.hpp"
#include "support/async.hpp"
#include "support/encrypted.hpp"

/// A gateway whose store is encrypted, over the wire: protocol.md §14.
namespace idem::test {
namespace {

class Encrypted : public Operated {
 protected:
  std::vector<std::string> flags() const override {
    std::vector<std::string> all = more_;
    for (const auto& name : secrets_) {
      all.insert(all.end(), {"--encryption-secret-file", secret(name)});
    }
    return all;
  }
  std::string secret(const std::string& name) const { return secret_file(dir_.path(), name); }

  /// Ends the gateway as a crash does, and starts another with these secrets on the same store.
  void restart_with(std::vector<std::string> secrets, std::vector<std::string> more = {}) {
    gateway_->kill();
    gateway_.reset();
    secrets_ = std::move(secrets);
    more_ = std::move(more);
    gateway_ = std::make_unique<Gateway>(options(provider_->address()));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  Ran rekey() {
    return run_program(built_program("idem"),
                       {"store", "rekey", "--admin-url", "http://" + gateway_->admin()});
  }
  std::vector<Response> run_keys(int count) {
    std::vector<Response> answers;
    for (int number = 0; number < count; ++number) {
      answers.push_back(ask(charge(fmt::format("k{}", number))));
      EXPECT_EQ(answers.back().status, 201) << answers.back().raw;
    }
    return answers;
  }
  void expect_replays(const std::vector<Response>& answers) {
    for (std::size_t number = 0; number < answers.size(); ++number) {
      const std::string key = fmt::format("k{}", number);
      const auto again = ask(charge(key));
      EXPECT_TRUE(replays(answers[number], again)) << again.raw;
      EXPECT_EQ(effects(key), 1);
    }
  }
  /// No key runs and no byte of an answer, open or sealed, reaches a client.
  void expect_damaged(int count) {
    for (int number = 0; number < count; ++number) {
      const std::string key = fmt::format("k{}", number);
      const auto refused = ask(charge(key));
      EXPECT_TRUE(is_problem(refused, 503, "record_damaged")) << refused.raw;
      EXPECT_EQ(refused.raw.find("idem-sealed"), std::string::npos);
      EXPECT_EQ(effects(key), 1);
    }
  }

  std::vector<std::string> secrets_{"oldest"};
  std::vector<std::string> more_;
};

TEST_F(Encrypted, S14_a_rotated_secret_opens_until_the_store_is_rekeyed_and_is_needed_no_more) {
  const auto answers = run_keys(120);
  expect_replays(answers);
  const std::string stored = store_content(dir_.path() / "idem.db");
  EXPECT_NE(stored.find("idem-sealed"), std::string::npos);
  EXPECT_EQ(stored.find(answers[0].body), std::string::npos) << "an answer lies there in clear";

  restart_with({"newer", "oldest"});
  expect_replays(answers);
  const auto first = rekey();
  EXPECT_EQ(first.exit_code, 0) << first.output;
  EXPECT_NE(first.output.find("changed 120"), std::string::npos) << first.output;
  const auto second = rekey();
  EXPECT_EQ(second.exit_code, 0) << second.output;
  EXPECT_NE(second.output.find("changed 0"), std::string::npos) << second.output;
  const Response page = post("/v1/store/rekey", "{}");
  EXPECT_EQ(page.status, 200) << page.raw;
  EXPECT_EQ(parse_json(page.body).value_or(Json{})["changed"].integer, 0);
  restart_with({"newer"});
  expect_replays(answers);

  restart_with({"oldest"});
  expect_damaged(2);
  EXPECT_TRUE(gateway_->process().wait_for_line("which none of encryption.secret_files gives"));
  const auto missing = rekey();
  EXPECT_EQ(missing.exit_code, 1) << missing.output;
  restart_with({});
  expect_damaged(2);
  EXPECT_EQ(rekey().exit_code, 5) << "this gateway has no secrets";
}

TEST_F(Encrypted, S14_answers_from_before_are_sealed_by_rekey_and_then_need_not_be_accepted) {
  restart_with({});
  const auto answers = run_keys(3);
  restart_with({"newer"});
  expect_replays(answers);
  restart_with({"newer"}, {"--encryption-accept-clear", "false"});
  expect_damaged(3);
  EXPECT_EQ(rekey().exit_code, 1) << "what is not accepted is not sealed";
  restart_with({"newer"});
  const auto sealed = rekey();
  EXPECT_NE(sealed.output.find("changed 3"), std::string::npos) << sealed.output;
  restart_with({"newer"}, {"--encryption-accept-clear", "false"});
  expect_replays(answers);
}

TEST_F(Encrypted, S14_a_kill_in_the_middle_of_a_rekey_loses_nothing_and_it_goes_on) {
  const auto answers = run_keys(150);
  restart_with({"newer", "oldest"});
  std::thread operator_([&] { (void)rekey(); });
  ASSERT_TRUE(gateway_->process().wait_for_line("rekey_began"));
  gateway_->kill();
  operator_.join();
  restart_with({"newer", "oldest"});
  expect_replays(answers);
  const auto rest = rekey();
  EXPECT_EQ(rest.exit_code, 0) << rest.output;
  restart_with({"newer"});
  expect_replays(answers);
}

TEST_F(Encrypted, S15_a_stored_request_is_sealed_and_runs_after_a_restart) {
  restart_with({"oldest"}, {"--mode", "async", "--async-tenant-concurrency", "1"});
  const auto first = ask(charge("first", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  const auto second = ask(charge("second", {}, R"({"card":"canarybody7782"})"));
  EXPECT_EQ(second.status, 202) << second.raw;
  EXPECT_EQ(store_content(dir_.path() / "idem.db").find("canarybody7782"), std::string::npos);
  restart_with({"newer", "oldest"}, {"--mode", "async", "--lease", "61s"});
  const Json done = state_when_ended(gateway_->address(), second);
  EXPECT_EQ(done["response_status"].integer, 201);
  EXPECT_EQ(effects("second"), 1);
  provider_->release("h");
}

TEST_F(Encrypted, V29_support_reads_the_opened_answer_and_an_answer_by_evidence_is_sealed) {
  const auto answers = run_keys(1);
  const Json record = only("completed");
  const Json shown = read("/v1/keys/" + record["ref"].string);
  EXPECT_FALSE(shown["response"]["body_b64"].string.empty());
  EXPECT_EQ(get("/v1/keys/" + record["ref"].string).raw.find("idem-sealed"), std::string::npos);

  ask(charge("lost", "drop-after"));
  const Json unknown = only("unknown");
  const auto resolved =
      post("/v1/keys/" + unknown["ref"].string + "/resolve",
           fmt::format(R"({{"as":"completed","fence":{},"evidence":"charge ch_1","reason":"t",)"
                       R"("response":{{"status":201,"headers":[["Content-Type","text/plain"]],)"
                       R"("body_b64":"Y2FuYXJ5ZXZpZGVuY2U="}}}})",
                       unknown["fence"].integer));
  ASSERT_EQ(resolved.status, 200) << resolved.raw;
  EXPECT_EQ(ask(charge("lost")).body, "canaryevidence");
  EXPECT_EQ(store_content(dir_.path() / "idem.db").find("canaryevidence"), std::string::npos);
}

}  // namespace
}  // namespace idem::test
