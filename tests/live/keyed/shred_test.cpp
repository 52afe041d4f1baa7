#include <fmt/format.h>

#include "support/admin.hpp"
#include "support/encrypted.hpp"
#include "support/moved_clock.hpp"

/// Keys of scopes, and what a tenant gets whose key an operator has deleted, over the wire.
namespace idem::test {
namespace {

class Shredded : public Operated {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem-crash");
    Operated::SetUp();
    gateway_->terminate();
    gateway_.reset();
    GatewayOptions own = options(provider_->address());
    own.program = "idem-crash";
    own.environment = {clock_.environment()};
    gateway_ = std::make_unique<Gateway>(std::move(own));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
    clock_.move_also_under(dir_.path() / "idem.db");
  }
  std::vector<std::string> flags() const override {
    return {"--encryption-secret-file", secret_file(dir_.path(), "oldest"),
            "--encryption-accept-clear", "false", "--encryption-key-per-scope"};
  }

  static Request charge_of(const std::string& tenant, const std::string& key) {
    return with(without(charge(key), "X-Tenant-Id"), "X-Tenant-Id", tenant);
  }
  void restart(std::vector<std::string> more = {}) {
    more.push_back(clock_.environment());
    gateway_->restart(std::move(more));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  Response step(const std::string& second = {}) {
    return post("/v1/store/shred", R"({"scope":"acme","reason":"ticket 4711")" +
                                       (second.empty() ? std::string() : R"(,"key":)" + second) +
                                       "}");
  }
  static Json json_of(const Response& answer) { return parse_json(answer.body).value_or(Json{}); }

  void expect_shredded(const std::string& key) {
    const auto refused = ask(charge_of("acme", key));
    EXPECT_TRUE(is_problem(refused, 409, "response_not_stored")) << refused.raw;
    EXPECT_EQ(json_of(refused)["original_status"].integer, 201);
    EXPECT_EQ(effects(key), 1);
  }
  void expect_replay(const std::string& tenant, const std::string& key, const Response& first) {
    const auto again = ask(charge_of(tenant, key));
    EXPECT_TRUE(replays(first, again)) << again.raw;
    EXPECT_EQ(effects(key), 1);
  }
  Response first(const std::string& tenant, const std::string& key) {
    auto answer = ask(charge_of(tenant, key));
    EXPECT_EQ(answer.status, 201) << answer.raw;
    return answer;
  }
  std::string stored() const { return store_content(dir_.path() / "idem.db"); }

  MovedClock clock_;
};

// SHA-256 of `acme`.
const std::string journal =
    "scope-key/822b33ad87c148a0a20a5ba7cd5ebcaa68d36a18e7aad165554903f52ca82757/";

TEST_F(Shredded, V29_S14_its_retries_get_409_and_never_run_and_other_tenants_replay_as_before) {
  const auto theirs = first("acme", "k1");
  const auto other = first("beta", "k2");
  const auto begun = step();
  ASSERT_EQ(begun.status, 200) << begun.raw;
  EXPECT_EQ(json_of(begun)["state"].string, "waiting");
  EXPECT_EQ(json_of(begun)["key"].integer, 2);
  expect_replay("acme", "k1", theirs);
  const auto early = step("2");
  EXPECT_EQ(json_of(early)["state"].string, "waiting") << early.raw;
  EXPECT_GT(json_of(early)["wait_ms"].integer, 10'000);
  EXPECT_TRUE(is_problem(step("3"), 409, "state_refused"));
  clock_.pass(16);
  const auto meanwhile = first("acme", "k3");
  const auto done = step("2");
  ASSERT_EQ(done.status, 200) << done.raw;
  EXPECT_EQ(json_of(done)["state"].string, "shredded");
  EXPECT_EQ(json_of(done)["deleted"].integer, 1);
  EXPECT_EQ(json_of(step("2"))["deleted"].integer, 0) << "a repeat";

  clock_.pass(11);  // Of the replay memory.
  expect_shredded("k1");
  restart();
  expect_shredded("k1");
  expect_replay("acme", "k3", meanwhile);
  expect_replay("beta", "k2", other);
  expect_replay("acme", "k4", first("acme", "k4"));
  std::vector<std::string> outcomes;
  const Json audit = read("/v1/audit?limit=100");
  for (const Json& line : audit["audit"].items) {
    if (line["what"].string != "store.shred") continue;
    EXPECT_EQ(line["ref"].string, "acme");
    EXPECT_EQ(line["reason"].string, "ticket 4711");
    if (!line["after"].string.empty()) outcomes.push_back(line["after"].string);
  }
  EXPECT_EQ(outcomes.size(), 5U);
}

TEST_F(Shredded, S14_the_store_has_nothing_of_the_key_afterwards) {
  first("acme", "k1");
  EXPECT_NE(stored().find(journal + "0000000001"), std::string::npos);
  ASSERT_EQ(step().status, 200);
  clock_.pass(16);
  ASSERT_EQ(json_of(step("2"))["state"].string, "shredded");
  gateway_->terminate();
  if (live_store_kind() != "sqlite") return;  // Others keep the row for a while (encryption.md).
  EXPECT_EQ(stored().find(journal + "0000000001"), std::string::npos);
  EXPECT_NE(stored().find(journal + "0000000002"), std::string::npos);
}

TEST_F(Shredded, S14_a_rekey_takes_the_keys_of_scopes_along) {
  const auto theirs = first("acme", "k1");
  gateway_->terminate();
  GatewayOptions own = options(provider_->address());
  own.flags.insert(own.flags.begin(),
                   {"--encryption-secret-file", secret_file(dir_.path(), "newer")});
  gateway_ = std::make_unique<Gateway>(own);
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  const auto rekey = [&] {
    return run_program(built_program("idem"),
                       {"store", "rekey", "--admin-url", "http://" + gateway_->admin()});
  };
  const auto done = rekey();
  EXPECT_EQ(done.exit_code, 0) << done.output;
  EXPECT_NE(done.output.find("keys of scopes changed 1"), std::string::npos) << done.output;
  const auto again = rekey();
  EXPECT_NE(again.output.find("keys of scopes changed 0"), std::string::npos) << again.output;
  gateway_->terminate();
  own.flags.erase(own.flags.begin() + 2, own.flags.begin() + 4);
  gateway_ = std::make_unique<Gateway>(own);
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  expect_replay("acme", "k1", theirs);
}

TEST_F(Shredded, V29_the_command_asks_before_it_deletes) {
  first("acme", "k1");
  const auto asked =
      run_program(built_program("idem"), {"store", "shred", "--scope", "acme", "--reason", "r",
                                          "--admin-url", "http://" + gateway_->admin()});
  EXPECT_EQ(asked.exit_code, 2) << asked.output;
  const auto none =
      run_program(built_program("idem"), {"store", "shred", "--scope", "nobody", "--reason", "r",
                                          "--yes", "--admin-url", "http://" + gateway_->admin()});
  EXPECT_EQ(none.exit_code, 5) << none.output;
  EXPECT_NE(none.output.find("no key of this scope"), std::string::npos) << none.output;
}

class CrashedShred : public Shredded, public testing::WithParamInterface<const char*> {};

TEST_P(CrashedShred, V29_S14_a_kill_between_the_lines_of_a_shred_leaves_it_to_be_done_again) {
  const auto theirs = first("acme", "k1");
  const auto other = first("beta", "k2");
  restart({std::string("IDEM_CRASH_AT=") + GetParam()});
  EXPECT_EQ(step().status, 0);
  ASSERT_EQ(gateway_->process().exit_code(), 128 + SIGKILL);
  restart();
  expect_replay("acme", "k1", theirs);
  const Json begun = json_of(step());
  ASSERT_EQ(begun["state"].string, "waiting");
  clock_.pass(16);
  restart({std::string("IDEM_CRASH_AT=") + GetParam()});
  const std::string key = std::to_string(begun["key"].integer);
  EXPECT_EQ(step(key).status, 0);
  ASSERT_EQ(gateway_->process().exit_code(), 128 + SIGKILL);
  restart();
  expect_replay("beta", "k2", other);
  const Json done = json_of(step(key));
  EXPECT_EQ(done["state"].string, "shredded");
  restart();
  expect_shredded("k1");
  expect_replay("beta", "k2", other);
  expect_replay("acme", "k3", first("acme", "k3"));
}

INSTANTIATE_TEST_SUITE_P(Points, CrashedShred,
                         testing::Values("resolve_before_commit", "resolve_after_commit"),
                         [](const auto& point) { return std::string(point.param); });

}  // namespace
}  // namespace idem::test
