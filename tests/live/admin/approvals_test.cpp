#include <fmt/format.h>

#include <thread>

#include "core/bytes/hex.hpp"
#include "support/admin.hpp"
#include "support/back_off.hpp"
#include "support/encrypted.hpp"
#include "support/jobs.hpp"
#include "support/moved_clock.hpp"

/// Decisions that need several people.
namespace idem::test {
namespace {

class Approvals : public Operated {
 protected:
  void SetUp() override {
    for (const auto* const name : {"ada", "bob", "carl"}) tokens_[name] = make_token(name);
    Operated::SetUp();
  }
  std::vector<std::string> flags() const override {
    return {
        "--admin-tokens", tokens_file(), "--approvals-resolve", "2", "--approvals-discard", "2"};
  }

  std::string tokens_file() const { return (dir_.path() / "tokens").string(); }
  std::string make_token(const std::string& name) {
    const auto made = run_program(
        built_program("idem"),
        {"admin", "token", name, "--role", "operator", "--tokens-file", tokens_file(), "--json"});
    EXPECT_EQ(made.exit_code, 0) << made.output;
    return parse_json(made.output).value_or(Json{})["token"].string;
  }

  Response send(const std::string& who, std::string method, std::string target,
                std::string body = {}) {
    Request request{
        .method = std::move(method),
        .target = std::move(target),
        .fields = {{"Host", gateway_->admin()}, {"Authorization", "Bearer " + tokens_.at(who)}},
        .body = std::move(body)};
    if (request.method == "POST") {
      request.fields.push_back({"Content-Type", "application/json"});
    }
    return send_once(gateway_->admin(), request);
  }
  Json see(const std::string& target) {
    const auto answer = send("carl", "GET", target);
    EXPECT_EQ(answer.status, 200) << answer.raw;
    return parse_json(answer.body).value_or(Json{});
  }
  Json unknown_one() {
    const Json page = see("/v1/keys?state=unknown");
    EXPECT_EQ(page["keys"].items.size(), 1U);
    return page["keys"].items.empty() ? Json{} : page["keys"].items[0];
  }
  static std::string completing(const Json& record) {
    return fmt::format(
        R"({{"as":"completed","fence":{},"evidence":"the bank's list","reason":"ticket 4711",)"
        R"("response":{{"status":201,"body_b64":"Zm91bmQ="}}}})",
        record["fence"].integer);
  }
  /// The approval's id.
  std::string ask_for(const std::string& who, const Json& record) {
    const auto asked =
        send(who, "POST", "/v1/keys/" + record["ref"].string + "/resolve", completing(record));
    EXPECT_EQ(asked.status, 202) << asked.raw;
    const Json approval = parse_json(asked.body).value_or(Json{});
    EXPECT_EQ(approval["given"].integer, 1);
    EXPECT_EQ(approval["needs"].integer, 2);
    EXPECT_EQ(approval["record"]["ref"].string, record["ref"].string);
    return approval["approval"].string;
  }
  Response act(const std::string& who, const std::string& id, const std::string& what) {
    return send(who, "POST", "/v1/approvals/" + id + "/" + what, R"({"reason":"seen"})");
  }
  std::string state_of(const std::string& id) { return see("/v1/approvals/" + id)["state"].string; }

  std::map<std::string, std::string> tokens_;
};

TEST_F(Approvals, V29_a_decision_is_made_when_a_second_person_has_approved_it) {
  ask(charge("k", "drop-after"));
  const Json record = unknown_one();
  const std::string id = ask_for("ada", record);
  EXPECT_EQ(unknown_one()["state"].string, "unknown");
  EXPECT_EQ(see("/v1/approvals")["approvals"].items.size(), 1U);

  const auto own = act("ada", id, "approve");
  EXPECT_TRUE(is_problem(own, 409, "state_refused")) << own.raw;
  EXPECT_NE(own.body.find("ada has given the approval already"), std::string::npos) << own.body;
  EXPECT_EQ(unknown_one()["state"].string, "unknown");
  EXPECT_EQ(see("/v1/keys/" + record["ref"].string)["evidence"].items.size(), 0U);

  const auto second = act("bob", id, "approve");
  EXPECT_EQ(second.status, 200) << second.raw;
  const Json approval = parse_json(second.body).value_or(Json{});
  EXPECT_EQ(approval["state"].string, "decided");
  EXPECT_EQ(approval["given"].integer, 2);
  EXPECT_EQ(approval["record"]["state"].string, "completed");
  const Json shown = see("/v1/keys/" + record["ref"].string);
  ASSERT_EQ(shown["evidence"].items.size(), 1U);
  EXPECT_EQ(shown["evidence"].items[0]["source"].string, "operator:ada");
  EXPECT_EQ(shown["evidence"].items[0]["reason"].string,
            "ticket 4711 (approved by bob, approval " + id + ")");
  EXPECT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(effects("k"), 1);
  EXPECT_TRUE(is_problem(act("carl", id, "approve"), 409, "state_refused"));
  std::vector<std::string> noted;
  const Json audit = see("/v1/audit?limit=100");
  for (const Json& line : audit["audit"].items) {
    if (line["what"].string.starts_with("config")) continue;
    noted.push_back(line["what"].string + " " + line["who"].string);
  }
  const std::vector<std::string> expected{"approvals.ask ada",     "approvals.ask ada",
                                          "approvals.approve bob", "approvals.approve bob",
                                          "keys.resolve ada",      "keys.resolve ada"};
  EXPECT_EQ(noted, expected);
}

TEST_F(Approvals, S19_an_order_about_a_record_that_has_changed_is_not_carried_out) {
  ask(charge("k", "drop-after"));
  const Json record = unknown_one();
  const std::string first = ask_for("ada", record);
  const std::string second = ask_for("carl", record);
  EXPECT_EQ(act("bob", first, "approve").status, 200);
  const auto late = act("bob", second, "approve");
  EXPECT_TRUE(is_problem(late, 409, "state_refused")) << late.raw;
  EXPECT_NE(late.body.find("has changed: then unknown"), std::string::npos) << late.body;
  EXPECT_EQ(state_of(second), "refused");
  EXPECT_TRUE(is_problem(act("ada", second, "approve"), 409, "state_refused"));
  EXPECT_EQ(see("/v1/keys/" + record["ref"].string)["evidence"].items.size(), 1U);
}

TEST_F(Approvals, V29_a_rejected_order_is_over_and_of_several_approvers_one_decides) {
  ask(charge("k", "drop-after"));
  const Json record = unknown_one();
  const std::string rejected = ask_for("ada", record);
  EXPECT_EQ(act("ada", rejected, "reject").status, 200) << "her own";
  EXPECT_EQ(state_of(rejected), "rejected");
  const Json audit = see("/v1/audit?ref=" + rejected);
  ASSERT_EQ(audit["audit"].items.size(), 4U);
  EXPECT_EQ(audit["audit"].items[2]["what"].string, "approvals.reject");
  EXPECT_EQ(audit["audit"].items[3]["after"].string, "rejected");
  EXPECT_TRUE(is_problem(act("bob", rejected, "approve"), 409, "state_refused"));
  EXPECT_TRUE(is_problem(act("bob", rejected, "reject"), 409, "state_refused"));
  EXPECT_EQ(unknown_one()["state"].string, "unknown");

  const std::string id = ask_for("ada", record);
  Response answers[2];
  std::thread other([&] { answers[1] = act("carl", id, "approve"); });
  answers[0] = act("bob", id, "approve");
  other.join();
  EXPECT_EQ((answers[0].status == 200) + (answers[1].status == 200), 1)
      << answers[0].raw << answers[1].raw;
  EXPECT_EQ(state_of(id), "decided");
  EXPECT_EQ(see("/v1/keys/" + record["ref"].string)["evidence"].items.size(), 1U);
}

TEST_F(Approvals, V29_a_job_needs_as_many_people_as_each_of_its_decisions) {
  make_unknown(gateway_->address(), "k", 8);
  const auto asked = send("ada", "POST", "/v1/jobs", completing_all(8, 500));
  ASSERT_EQ(asked.status, 202) << asked.raw;
  const std::string id = parse_json(asked.body).value_or(Json{})["approval"].string;
  ASSERT_FALSE(id.empty()) << asked.raw;
  EXPECT_EQ(send("carl", "GET", "/v1/jobs/" + id).status, 404);
  // One more matches now than what was seen.
  make_unknown(gateway_->address(), "more", 1);
  EXPECT_TRUE(is_problem(act("bob", id, "approve"), 409, "state_refused"));
  EXPECT_EQ(see("/v1/keys?state=unknown")["keys"].items.size(), 9U);

  const auto again = send("ada", "POST", "/v1/jobs", completing_all(9, 500));
  const std::string good = parse_json(again.body).value_or(Json{})["approval"].string;
  ASSERT_EQ(act("bob", good, "approve").status, 200);
  const auto until = std::chrono::steady_clock::now() + patience;
  Json job;
  do {
    back_off();
    job = see("/v1/jobs/" + good);
  } while (!is_over(job) && std::chrono::steady_clock::now() < until);
  EXPECT_EQ(job["done"].integer, 9);
  EXPECT_EQ(job["who"].string, "ada");
  EXPECT_EQ(see("/v1/keys?state=completed")["keys"].items.size(), 9U);
}

TEST_F(Approvals, V29_nobody_makes_a_second_person_or_is_asked_about_what_would_fail) {
  const auto made = send("ada", "POST", "/v1/tokens", R"({"name":"eve","role":"operator"})");
  EXPECT_TRUE(is_problem(made, 409, "state_refused")) << made.raw;
  ASSERT_EQ(ask(charge("done")).status, 201);
  const Json done = see("/v1/keys?state=completed")["keys"];
  const auto vain = send("ada", "POST", "/v1/keys/" + done.items.at(0)["ref"].string + "/resolve",
                         completing(done.items.at(0)));
  EXPECT_TRUE(is_problem(vain, 409, "state_refused")) << vain.raw;
  EXPECT_TRUE(see("/v1/approvals")["approvals"].items.empty());
  const std::string nobody(32, '0');
  EXPECT_TRUE(is_problem(act("ada", nobody, "approve"), 404, "not_found"));
  EXPECT_EQ(send("ada", "GET", "/v1/approvals/" + nobody).status, 404);
  EXPECT_EQ(send("ada", "GET", "/v1/approvals/x").status, 400);
}

TEST_F(Approvals, V29_the_command_line_says_that_an_order_waits) {
  ask(charge("k", "drop-after"));
  const Json record = unknown_one();
  const auto idem = [&](const std::string& who, std::vector<std::string> words) {
    return run_program(
        built_program("idem"), std::move(words),
        {"IDEM_ADMIN_URL=http://" + gateway_->admin(), "IDEM_ADMIN_TOKEN=" + tokens_.at(who)});
  };
  const auto asked = idem("ada", {"keys", "resolve", record["ref"].string, "--fence",
                                  std::to_string(record["fence"].integer), "--as", "completed",
                                  "--status", "201", "--evidence", "e", "--reason", "r"});
  EXPECT_EQ(asked.exit_code, 5) << asked.output;
  EXPECT_NE(asked.output.find("nothing is done yet"), std::string::npos) << asked.output;
  const std::string id = see("/v1/approvals")["approvals"].items.at(0)["approval"].string;
  EXPECT_NE(idem("bob", {"approvals", "list"}).output.find(id), std::string::npos);
  const auto shown = idem("bob", {"approvals", "show", id});
  EXPECT_NE(shown.output.find("record: state"), std::string::npos) << shown.output;
  for (const auto* const part : {"order: as", "order: response.status", "order: evidence"}) {
    EXPECT_NE(shown.output.find(part), std::string::npos) << part << '\n' << shown.output;
  }
  EXPECT_EQ(idem("ada", {"approvals", "approve", id, "--reason", "r"}).exit_code, 5);
  const auto approved = idem("bob", {"approvals", "approve", id, "--reason", "looked"});
  EXPECT_EQ(approved.exit_code, 0) << approved.output;
  EXPECT_NE(approved.output.find("decided"), std::string::npos) << approved.output;
}

// By these notes a process finds out whether a decision was made.
TEST_F(Approvals, V29_nobody_writes_the_notes_of_jobs_and_approvals_into_a_reason) {
  ask(charge("k", "drop-after"));
  const Json record = unknown_one();
  for (const auto* const reason : {"x (approved by bob, approval 1)", "x (job 1)"}) {
    const auto answer =
        send("ada", "POST", "/v1/keys/" + record["ref"].string + "/release",
             fmt::format(R"({{"fence":{},"reason":"{}"}})", record["fence"].integer, reason));
    EXPECT_EQ(answer.status, 400) << answer.raw;
    EXPECT_NE(answer.body.find("/reason"), std::string::npos) << answer.raw;
  }
}

class ApprovedReleases : public Approvals {
 protected:
  std::vector<std::string> flags() const override {
    auto all = Approvals::flags();
    all.insert(all.end(), {"--approvals-release", "2", "--preset", "stripe"});
    return all;
  }
};

TEST_F(ApprovedReleases, V29_V36_a_stored_server_error_is_released_by_two) {
  ask(charge("k", "refuse=500"));
  const Json record = see("/v1/keys?state=completed")["keys"].items.at(0);
  const auto asked =
      send("ada", "POST", "/v1/keys/" + record["ref"].string + "/release",
           fmt::format(R"({{"fence":{},"reason":"deployed"}})", record["fence"].integer));
  ASSERT_EQ(asked.status, 202) << asked.raw;
  EXPECT_EQ(ask(charge("k", "refuse=500")).status, 500) << "nothing is done yet";
  const std::string id = parse_json(asked.body).value_or(Json{})["approval"].string;
  EXPECT_EQ(act("bob", id, "approve").status, 200);
  EXPECT_EQ(state_of(id), "decided");
  EXPECT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(effects("k"), 1);
}

class LateApprovals : public Approvals {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem-crash");
    Approvals::SetUp();
    GatewayOptions own = options(provider_->address());
    own.program = "idem-crash";
    own.environment = {clock_.environment()};
    if (!stops_at().empty()) own.environment.push_back("IDEM_STOP_AT=" + stops_at());
    gateway_.reset();
    gateway_ = std::make_unique<Gateway>(std::move(own));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
    clock_.move_also_under(dir_.path() / "idem.db");
  }
  virtual std::string stops_at() const { return {}; }
  MovedClock clock_;
};

TEST_F(LateApprovals, V29_an_order_does_not_wait_longer_than_a_day) {
  ask(charge("k", "drop-after"));
  const Json record = unknown_one();
  const std::string id = ask_for("ada", record);
  clock_.pass(24L * 60 * 60 + 1);
  EXPECT_EQ(state_of(id), "expired");
  EXPECT_TRUE(is_problem(act("bob", id, "approve"), 409, "state_refused"));
  EXPECT_EQ(see("/v1/keys/" + record["ref"].string)["evidence"].items.size(), 0U);
}

/// Stops between what the first order has read and the line that notes it.
class SlowApprovals : public LateApprovals {
 protected:
  std::string stops_at() const override { return "resolve_before_commit:1"; }
};

TEST_F(SlowApprovals, S19_negative_evidence_of_a_job_counts_from_the_moment_of_the_order) {
  make_unknown(gateway_->address(), "k", 3);
  Response asked;
  std::thread ada([&] {
    asked = send("ada", "POST", "/v1/jobs",
                 R"({"what":"keys.resolve","match":{"state":"unknown"},"expected":3,"rate":500,)"
                 R"("order":{"as":"failed_retryable","evidence":"e","reason":"r"}})");
  });
  const bool is_stopped = gateway_->process().wait_stopped();
  clock_.pass(60L * 60);
  gateway_->carry_on();
  ada.join();
  ASSERT_TRUE(is_stopped);
  ASSERT_EQ(asked.status, 202) << asked.raw;
  const std::string id = parse_json(asked.body).value_or(Json{})["approval"].string;
  ASSERT_EQ(act("bob", id, "approve").status, 200);
  const auto until = std::chrono::steady_clock::now() + patience;
  Json job;
  do {
    back_off();
    job = see("/v1/jobs/" + id);
  } while (!is_over(job) && std::chrono::steady_clock::now() < until);
  EXPECT_EQ(job["done"].integer, 0);
  EXPECT_EQ(job["refused"].integer, 3);
  const Json results = see("/v1/jobs/" + id + "/results");
  for (const Json& one : results["results"].items) {
    EXPECT_EQ(one["verdict"].string, "too_early");
  }
}

class SealedApprovals : public Approvals {
 protected:
  std::vector<std::string> flags() const override {
    auto all = Approvals::flags();
    all.insert(all.end(), more_.begin(), more_.end());
    return all;
  }
  /// Another gateway on the same store.
  void restart_with(bool is_sealed, const std::string& accepts_clear = "false") {
    gateway_->terminate();
    more_.clear();
    if (is_sealed) {
      more_ = {"--encryption-secret-file", secret_file(dir_.path(), "newest"),
               "--encryption-accept-clear", accepts_clear};
    }
    gateway_ = std::make_unique<Gateway>(options(provider_->address()));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }

  std::vector<std::string> more_;
};

TEST_F(SealedApprovals, V29_S14_an_order_that_waits_is_not_in_the_stores_files) {
  restart_with(true);
  ask(charge("k", "drop-after"));
  const std::string id = ask_for("ada", unknown_one());
  const std::string stored = store_content(dir_.path() / "idem.db");
  if (live_store_kind() == "sqlite") {
    EXPECT_NE(stored.find("approval/" + id), std::string::npos);
  }
  for (const std::string& text : {std::string("Zm91bmQ="), std::string("the bank's list")}) {
    EXPECT_EQ(stored.find(text), std::string::npos) << text;
    EXPECT_EQ(stored.find(hex_of(text)), std::string::npos) << text << " in a dump of PostgreSQL";
  }
  restart_with(true);
  EXPECT_EQ(act("bob", id, "approve").status, 200);
  EXPECT_EQ(state_of(id), "decided");
  EXPECT_EQ(ask(charge("k")).body, "found");
  EXPECT_EQ(effects("k"), 1);
}

// Who writes to the store and has no key, such as this gateway, can put nothing else there.
TEST_F(SealedApprovals, V29_S14_an_order_that_an_attacker_put_there_in_clear_decides_nothing) {
  ask(charge("k", "drop-after"));
  const Json record = unknown_one();
  const std::string id = ask_for("ada", record);
  restart_with(true);
  const auto refused = act("bob", id, "approve");
  EXPECT_TRUE(is_problem(refused, 409, "state_refused")) << refused.raw;
  EXPECT_NE(refused.body.find("is in clear, and encryption.accept_clear is false"),
            std::string::npos);
  EXPECT_EQ(unknown_one()["state"].string, "unknown");
  EXPECT_EQ(see("/v1/keys/" + record["ref"].string)["evidence"].items.size(), 0U);
  restart_with(true, "true");
  EXPECT_EQ(act("bob", id, "approve").status, 200);
}

TEST_F(SealedApprovals, V29_S14_an_approval_in_clear_does_not_complete_a_sealed_order) {
  restart_with(true);
  ask(charge("k", "drop-after"));
  const Json record = unknown_one();
  const std::string id = ask_for("ada", record);
  restart_with(false);
  const auto refused = act("bob", id, "approve");
  EXPECT_TRUE(is_problem(refused, 409, "state_refused")) << refused.raw;
  restart_with(true);
  EXPECT_EQ(state_of(id), "waiting") << "a gateway without the key has written nothing";
  EXPECT_EQ(unknown_one()["state"].string, "unknown");
}

class CrashedApprovals : public Approvals, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem-crash");
    Approvals::SetUp();
  }
};

// The third decision is the one that was asked for; the approval comes before it.
TEST_P(CrashedApprovals, V29_a_crash_around_the_decision_is_finished_by_one_more_approval) {
  ask(charge("k", "drop-after"));
  const Json record = unknown_one();
  GatewayOptions own = options(provider_->address());
  own.program = "idem-crash";
  own.environment = {std::string("IDEM_CRASH_AT=") + GetParam()};
  gateway_.reset();
  gateway_ = std::make_unique<Gateway>(std::move(own));
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  const std::string id = ask_for("ada", record);
  EXPECT_EQ(act("bob", id, "approve").status, 0);
  ASSERT_EQ(gateway_->process().exit_code(), 128 + SIGKILL);
  gateway_->restart();
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  EXPECT_EQ(state_of(id), "deciding");
  EXPECT_TRUE(is_problem(act("carl", id, "reject"), 409, "state_refused"));
  // Another process might still be deciding, unless the store has none.
  const auto until = std::chrono::steady_clock::now() + 2 * patience;
  Response finished;
  do {
    back_off();
    finished = act("bob", id, "approve");
  } while (finished.status == 409 && std::chrono::steady_clock::now() < until);
  EXPECT_EQ(finished.status, 200) << finished.raw;
  EXPECT_EQ(state_of(id), "decided");
  const Json shown = see("/v1/keys/" + record["ref"].string);
  EXPECT_EQ(shown["state"].string, "completed");
  EXPECT_EQ(shown["evidence"].items.size(), 1U) << "decided once";
  const Json audit = see("/v1/audit?ref=" + id);
  ASSERT_FALSE(audit["audit"].items.empty());
  const Json last = audit["audit"].items.back();
  EXPECT_EQ(last["what"].string, "approvals.approve");
  EXPECT_EQ(last["who"].string, "bob");
  EXPECT_EQ(last["after"].string, "finished: decided, done");
}

INSTANTIATE_TEST_SUITE_P(
    Points, CrashedApprovals, testing::Values("resolve_before_commit:3", "resolve_after_commit:3"),
    [](const auto& point) {
      return std::string(point.param).substr(0, 20).starts_with("resolve_before") ? "before"
                                                                                  : "behind";
    });

}  // namespace
}  // namespace idem::test
