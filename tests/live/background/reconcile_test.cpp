#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "support/admin.hpp"
#include "support/back_off.hpp"

/// Lost outcomes, settled by asking the provider.
namespace idem::test {
namespace {

class Reconciled : public Operated {
 protected:
  std::vector<std::string> flags() const override {
    write_file("bank");
    return {"--config", file(), "--upstream-timeout", "400ms", "--lease", "1s"};
  }
  std::string file() const { return (dir_.path() / "idem.yaml").string(); }
  void write_file(std::string_view asked) const {
    std::ofstream(file(), std::ios::trunc)
        << "providers:\n"
        << provider("bank", query_) << provider("stranger", "operation=of-{operation}")
        << "routes:\n"
           "  - match: { path: \"/{rest...}\" }\n"
           "    reconcile: "
        << asked << "\n";
  }
  std::string provider(std::string_view name, std::string_view query) const {
    return fmt::format(
        "  - name: {}\n"
        "    url: \"http://{}/charges?{}\"\n"
        "    found: [\"200 /charges/0\"]\n"
        "    not_there: [\"200 !/charges/0\"]\n"
        "    grace: 200ms\n"
        "    retry_first: 100ms\n"
        "    retry_max: 400ms\n"
        "    attempts: {}\n"
        "    replay:\n"
        "      found_status: 201\n"
        "      body: /charges/0\n"
        "      headers: [\"Location: /charges/{{/charges/0/id}}\"]\n",
        name, provider_->address(), query, attempts_);
  }

  Json record_of(const std::string& ref) { return read("/v1/keys/" + ref); }
  /// Until it is settled, one way or another.
  std::string settled(const std::string& ref) {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const std::string state = record_of(ref)["state"].string;
      if (state != "unknown" || std::chrono::steady_clock::now() > until) return state;
      back_off();
    }
  }

  int attempts_ = 100;
  std::string query_ = "operation={operation}";
};

TEST_F(Reconciled, S19_a_lost_answer_is_found_and_replayed_as_it_would_have_been) {
  const auto lost = ask(charge("k", "drop-after"));
  ASSERT_EQ(lost.status, 502) << lost.raw;
  EXPECT_EQ(lost.get("Retry-After"), "1");
  const Json problem = parse_json(lost.body).value_or(Json{});
  EXPECT_EQ(problem["retry"].string, "later");
  const std::string ref = problem["operation_ref"].string;
  ASSERT_EQ(settled(ref), "completed") << gateway_->process().output();
  const auto replay = ask(charge("k"));
  EXPECT_EQ(replay.status, 201);
  EXPECT_EQ(replay.get("Idempotent-Replayed"), "true");
  const auto shown =
      send_once(provider_->address(),
                {.method = "GET", .target = replay.get("Location").value_or(""), .fields = {}});
  EXPECT_EQ(shown.status, 200);
  EXPECT_EQ(shown.body, replay.body);
  EXPECT_EQ(effects("k"), 1);
  const Json record = record_of(ref);
  ASSERT_EQ(record["evidence"].items.size(), 1U);
  EXPECT_EQ(record["evidence"].items[0]["source"].string, "poll:bank");
  EXPECT_EQ(metric_from("idem_reconcile_total{result=\"resolved\"}", 1), 1);
  const auto shown_record = run_program(built_program("idem"), {"keys", "show", ref},
                                        {"IDEM_ADMIN_URL=http://" + gateway_->admin()});
  EXPECT_EQ(shown_record.exit_code, 0);
  for (const auto* part : {"poll:bank, about the attempt with fence", "evidence  found, status 200",
                           "result    unknown became completed"}) {
    EXPECT_NE(shown_record.output.find(part), std::string::npos) << shown_record.output;
  }
}

TEST_F(Reconciled, S19_an_attempt_that_never_ran_is_freed_and_a_retry_runs) {
  const auto lost = ask(charge("k", "drop-before"));
  ASSERT_EQ(lost.status, 502) << lost.raw;
  const std::string ref = parse_json(lost.body).value_or(Json{})["operation_ref"].string;
  ASSERT_EQ(settled(ref), "failed_retryable") << gateway_->process().output();
  EXPECT_EQ(effects("k"), 0);
  EXPECT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Reconciled, S19_queries_that_are_down_for_a_while_only_delay_it) {
  provider_->queries("status=503");
  const auto lost = ask(charge("k", "drop-after"));
  const std::string ref = parse_json(lost.body).value_or(Json{})["operation_ref"].string;
  // It has been asked, and has said nothing.
  ASSERT_GE(metric_from("idem_reconcile_total{result=\"scheduled\"}", 2), 2);
  EXPECT_EQ(record_of(ref)["state"].string, "unknown");
  EXPECT_EQ(ask(charge("k")).status, 409);
  provider_->queries("status=0");
  EXPECT_EQ(settled(ref), "completed");
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Reconciled, S19_a_gateway_that_dies_with_the_answer_leaves_it_to_the_next) {
  Connection client(gateway_->address());
  client.send(charge("k", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  gateway_->kill();
  provider_->release("h");
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  const auto until = std::chrono::steady_clock::now() + patience;
  Response replay = ask(charge("k"));
  while (replay.status != 201 && std::chrono::steady_clock::now() < until) {
    EXPECT_EQ(replay.status, 409) << replay.raw;
    back_off();
    replay = ask(charge("k"));
  }
  EXPECT_EQ(replay.status, 201);
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Reconciled, S19_the_recorded_provider_is_asked_though_the_route_names_another) {
  provider_->queries("status=503");
  const auto lost = ask(charge("k", "drop-after"));
  const std::string ref = parse_json(lost.body).value_or(Json{})["operation_ref"].string;
  EXPECT_EQ(record_of(ref)["provider"].string, "bank");
  write_file("stranger");
  gateway_->process().signal(SIGHUP);
  ASSERT_TRUE(gateway_->process().wait_for_line("reloaded ", patience));
  provider_->queries("status=0");
  EXPECT_EQ(settled(ref), "completed") << "the other one would have known of nothing";
  const Json record = record_of(ref);
  EXPECT_EQ(record["evidence"].items.back()["source"].string, "poll:bank");
  EXPECT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(effects("k"), 1);
  const auto lost_later = ask(charge("l", "drop-before"));
  const std::string later = parse_json(lost_later.body).value_or(Json{})["operation_ref"].string;
  EXPECT_EQ(settled(later), "failed_retryable");
  EXPECT_EQ(record_of(later)["evidence"].items.back()["source"].string, "poll:stranger");
}

class ReconciledByKey : public Reconciled {
 protected:
  ReconciledByKey() { query_ = "key={key}&of={scope}"; }
  /// Every file of the gateway's.
  std::string all_that_is_stored() const {
    std::string bytes;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.path())) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      bytes.append(std::istreambuf_iterator<char>(in), {});
    }
    return bytes;
  }
};

TEST_F(ReconciledByKey, S19_a_charge_known_only_by_the_clients_key_is_found) {
  const std::string key = "order-4711-of-a-client";
  provider_->queries("status=503");
  const auto lost = ask(charge(key, "drop-after"));
  ASSERT_EQ(lost.status, 502) << lost.raw;
  const std::string ref = parse_json(lost.body).value_or(Json{})["operation_ref"].string;
  gateway_->kill();
  EXPECT_EQ(all_that_is_stored().find(key), std::string::npos) << "it is stored sealed only";
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  provider_->queries("status=0");
  ASSERT_EQ(settled(ref), "completed") << gateway_->process().output();
  EXPECT_EQ(ask(charge(key)).status, 201);
  EXPECT_EQ(effects(key), 1);
  const auto never_done = ask(charge("order-4712", "drop-before"));
  const std::string other = parse_json(never_done.body).value_or(Json{})["operation_ref"].string;
  EXPECT_EQ(settled(other), "failed_retryable") << "the charge there is another key's";
  EXPECT_EQ(gateway_->process().output().find("order-471"), std::string::npos);
}

class GivenUp : public Reconciled {
 protected:
  GivenUp() { attempts_ = 2; }
};

TEST_F(GivenUp, S19_V29_a_record_without_evidence_is_in_the_operators_queue) {
  provider_->queries("status=404");
  const auto lost = ask(charge("k", "drop-after"));
  const std::string ref = parse_json(lost.body).value_or(Json{})["operation_ref"].string;
  ASSERT_GE(metric_from("idem_reconcile_total{result=\"failed\"}", 1), 1);
  EXPECT_EQ(only("unknown")["ref"].string, ref);
  const auto retry = ask(charge("k"));
  EXPECT_EQ(retry.status, 409);
  EXPECT_FALSE(retry.get("Retry-After"));
  EXPECT_EQ(parse_json(retry.body).value_or(Json{})["retry"].string, "never");
  const Json record = record_of(ref);
  ASSERT_EQ(record["evidence"].items.size(), 2U);
  EXPECT_NE(record["evidence"].items[0]["reason"].string.find("404"), std::string::npos);
  EXPECT_NE(record["evidence"].items[1]["reason"].string.find("given up"), std::string::npos);
}

}  // namespace
}  // namespace idem::test
