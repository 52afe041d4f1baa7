#include "support/back_off.hpp"
#include "support/shadowed.hpp"

#include <csignal>
#include <fstream>

/// Routes with `enforce: shadow`: every request passes, and what enforcement would do is counted.
namespace idem::test {
namespace {

class ShadowLive : public Shadowed {
 protected:
  void restart_with(std::vector<std::string> flags) {
    EXPECT_EQ(gateway_->terminate(), 0);
    auto options = this->options(provider_->address());
    options.flags = std::move(flags);
    gateway_ = std::make_unique<Gateway>(std::move(options));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  static std::string sample(const std::string& decision) {
    return R"(idem_shadow_total{route="/{rest...}",decision=")" + decision + "\"}";
  }
  std::string config(const std::string& text) const {
    const auto path = (dir_.path() / "shadow.yaml").string();
    std::ofstream(path, std::ios::trunc) << text;
    return path;
  }
};

bool has_our_fields(const Response& answer) {
  return answer.get("Idempotent-Replayed") || answer.get("Idempotency-Outcome") ||
         answer.get("Idempotency-Expires") || answer.get("Idem-Operation");
}

TEST_F(ShadowLive, S22_every_request_passes_and_is_counted_as_enforcement_would_decide) {
  for (int i = 0; i < 2; ++i) {  // A first one and a duplicate.
    const auto answer = ask(charge("k"));
    EXPECT_EQ(answer.status, 201);
    EXPECT_FALSE(has_our_fields(answer)) << answer.raw;
    report(i + 1);
  }
  EXPECT_EQ(effects("k"), 2) << "nothing protects a request in shadow";
  EXPECT_EQ(ask(charge("k", "", R"({"amount":1})")).status, 201);  // Misuse.
  EXPECT_EQ(ask(without(charge("x"), "Idempotency-Key")).status, 201);
  EXPECT_EQ(ask(charge("two words")).status, 201);
  EXPECT_EQ(ask(without(charge("x"), "X-Tenant-Id")).status, 201);
  EXPECT_EQ(ask(charge("lost", "drop-after")).status, 502);  // Unknown.
  EXPECT_EQ(ask(charge("lost")).status, 201);                // Its retry.
  EXPECT_EQ(ask(charge("free", "refuse=429")).status, 429);  // Released.
  EXPECT_EQ(ask(charge("free")).status, 201);                // Runs again.
  const auto upgrade = with(with(charge("k"), "Connection", "upgrade"), "Upgrade", "websocket");
  EXPECT_EQ(ask(upgrade).status, 201);  // 501 of a keyed one.
  auto miscased = charge("k");
  miscased.method = "post";
  miscased.target = "/echo";
  EXPECT_EQ(ask(miscased).status, 200);  // 400 where the rules for keys decide.
  Request get{.method = "GET", .target = "/echo", .fields = {{"X-Tenant-Id", "acme"}}};
  EXPECT_EQ(ask(with(get, "X-HTTP-Method-Override", "POST")).status, 200);  // 400, too.
  EXPECT_EQ(ask(charge("o", "", R"({"amount":1,"_method":"PUT"})")).status, 201);
  EXPECT_EQ(ask(with(get, "Idempotency-Key", "k")).status, 200);  // Its key does not count.

  Connection first(gateway_->address());
  first.send(charge("held", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  // The upstream may have it before the gateway has observed it.
  EXPECT_EQ(metric_from(sample("first"), 5), 5);
  EXPECT_EQ(ask(charge("held")).status, 201);  // A race.
  provider_->release("h");
  EXPECT_EQ(first.read_response().status, 201);

  const Json seen = report(16);
  EXPECT_EQ(seen["requests"].integer, 16);
  EXPECT_EQ(seen["first"].integer, 5);
  EXPECT_EQ(seen["duplicates"].integer, 1);
  EXPECT_EQ(seen["misuse"].integer, 1);
  EXPECT_EQ(seen["missing_key"].integer, 1);
  EXPECT_EQ(seen["bad_key"].integer, 1);
  EXPECT_EQ(seen["missing_scope"].integer, 1);
  EXPECT_EQ(seen["refused"].integer, 4);
  EXPECT_EQ(seen["races"].integer, 1);
  EXPECT_EQ(seen["unknown"].integer, 1);
  EXPECT_EQ(seen["unknown_retries"].integer, 1);
  EXPECT_EQ(seen["not_observed"].integer, 0);
  EXPECT_EQ(seen["not_settled"].integer, 0);
  EXPECT_EQ(seen["enforce"].string, "shadow");
  ASSERT_EQ(seen["tenants"].items.size(), 2U);
  EXPECT_EQ(seen["tenants"].items[0]["scope"].string, "acme");
  EXPECT_EQ(seen["tenants"].items[0]["clients"].items[0]["client"].string, "127.0.0.1");
  EXPECT_EQ(metric(sample("misuse")), 1);
  EXPECT_EQ(metric(R"(idem_reserve_total{outcome="created"})"), 0);
}

TEST_F(ShadowLive, S22_records_hold_no_customer_data_and_none_is_left_unknown) {
  ask(charge("marked-key-4711", "", R"({"secret":"marked-body-4711"})"));
  ask(charge("lost", "drop-after"));
  report(2);
  const Json page = read("/v1/keys");
  ASSERT_EQ(page["keys"].items.size(), 2U);
  for (const Json& one : page["keys"].items) {
    EXPECT_EQ(one["operation"].string, "shadow:POST /charges");
    EXPECT_EQ(one["state"].string, "completed");
    const Json shown = read("/v1/keys/" + one["ref"].string);
    EXPECT_FALSE(shown["response"]["body_stored"].boolean);
    const auto looked_up = ask({.method = "GET",
                                .target = "/.idem/operations/" + one["ref"].string,
                                .fields = {{"X-Tenant-Id", "acme"}}});
    EXPECT_EQ(looked_up.status, 404) << looked_up.raw;
  }
  const auto found =
      read("/v1/keys?scope=acme&operation=shadow:POST%20/charges&key=lost")["keys"].items;
  EXPECT_EQ(found.size(), 1U);
  gateway_->terminate();
  const auto content = store_content(dir_.path() / "idem.db");
  EXPECT_EQ(content.find("marked-body-4711"), std::string::npos);
  EXPECT_EQ(content.find("marked-key-4711"), std::string::npos);
  EXPECT_EQ(content.find("\"ch_"), std::string::npos) << "the upstream's answer";
}

TEST_F(ShadowLive, S22_explain_says_what_enforcement_would_do) {
  const Json fresh = explain(charge("k"));
  EXPECT_EQ(fresh["enforce"].string, "shadow");
  EXPECT_EQ(fresh["outcome"].string, "execute");
  ask(charge("k"));
  ask(charge("lost", "drop-after"));
  report(2);
  const Json replay = explain(charge("k"));
  EXPECT_EQ(replay["outcome"].string, "replay");
  EXPECT_EQ(replay["answer"]["status"].integer, 201);
  EXPECT_EQ(explain(charge("k", "", "{}"))["outcome"].string, "misuse");
  EXPECT_EQ(explain(charge("lost"))["outcome"].string, "unknown");
  EXPECT_EQ(explain(without(charge("k"), "Idempotency-Key"))["answer"]["code"].string,
            "key_missing");
  const Json policy = parse_json(ask({.method = "GET", .target = "/.well-known/idempotency"}).body)
                          .value_or(Json{})["routes"]
                          .items.at(0);
  EXPECT_EQ(policy["enforce"].string, "shadow");
  EXPECT_FALSE(policy["key_required"].boolean);
  EXPECT_FALSE(policy.has("retention_seconds"));
}

TEST_F(ShadowLive, S22_large_and_endless_requests_pass_and_are_counted) {
  restart_with(
      {"--enforce", "shadow", "--request-body-max", "64KiB", "--response-body-max", "16KiB"});
  const std::string large = R"({"pad":")" + std::string(100'000, 'x') + "\"}";
  EXPECT_EQ(ask(charge("large", "", large)).status, 201);
  // Digested beside the loop; its retry waits for it, and its request does not.
  const std::string medium = R"({"pad":")" + std::string(60'000, 'x') + "\"}";
  EXPECT_EQ(ask(charge("medium", "", medium)).status, 201);
  EXPECT_EQ(ask(charge("medium", "", medium)).status, 201);
  EXPECT_EQ(ask(charge("answer", "size=20000")).status, 201);
  EXPECT_EQ(ask(charge("answer", "size=20000")).status, 201);
  const Json seen = report(5);
  EXPECT_EQ(seen["refused"].integer, 1) << "413";
  EXPECT_EQ(seen["first"].integer, 2);
  EXPECT_EQ(seen["duplicates"].integer, 1);
  EXPECT_EQ(seen["not_kept"].integer, 1);
}

TEST_F(ShadowLive, S22_an_upload_that_breaks_off_is_not_observed) {
  {
    Connection client(gateway_->address());
    client.send_raw(
        "POST /charges HTTP/1.1\r\nHost: h\r\nX-Tenant-Id: acme\r\nIdempotency-Key: k\r\n"
        "Content-Length: 100\r\n\r\nbegun");
  }
  const Json seen = report(1);
  EXPECT_EQ(seen["not_observed_by"]["upload"].integer, 1);
  EXPECT_EQ(read("/v1/keys")["keys"].items.size(), 0U);
}

TEST_F(ShadowLive, S22_a_reload_switches_a_route_on_while_requests_are_observed) {
  const auto file = config("defaults: {enforce: shadow}\n");
  restart_with({"--config", file});
  ask(charge("before"));
  report(1);
  Connection held(gateway_->address());
  held.send(charge("held", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  config("defaults: {enforce: on}\n");
  gateway_->process().signal(SIGHUP);
  ASSERT_TRUE(gateway_->process().wait_for_line("reloaded"));
  EXPECT_EQ(ask(charge("after")).get("Idempotency-Outcome"), "stored");
  EXPECT_EQ(ask(charge("after")).get("Idempotent-Replayed"), "true");
  // What shadow saw answers nobody.
  EXPECT_EQ(ask(charge("before")).get("Idempotency-Outcome"), "stored");
  EXPECT_EQ(effects("before"), 2);
  provider_->release("h");
  const auto answer = held.read_response();
  EXPECT_EQ(answer.status, 201);
  EXPECT_FALSE(has_our_fields(answer)) << answer.raw;
  const Json seen = report(2);
  EXPECT_EQ(seen["enforce"].string, "on");
  EXPECT_EQ(seen["first"].integer, 2);
  EXPECT_EQ(read("/v1/keys?operation=shadow:POST%20/charges")["keys"].items.size(), 2U);
}

TEST_F(ShadowLive, S22_S02_records_of_shadow_keep_no_route_from_being_renamed) {
  const std::string head = "routes:\n  - match: {path: /charges}\n    enforce: shadow\n";
  const auto file = config(head + "    name: old\n");
  restart_with({"--config", file});
  ask(charge("k"));
  report(1);
  config(head + "    name: new\n");
  gateway_->process().signal(SIGHUP);
  EXPECT_TRUE(gateway_->process().wait_for_line("reloaded")) << gateway_->process().output();
}

TEST_F(ShadowLive, S22_a_killed_gateway_leaves_no_attempt_behind_its_lease) {
  const std::vector<std::string> flags{"--enforce", "shadow",  "--upstream-timeout",
                                       "1s",        "--lease", "2s"};
  restart_with(flags);
  Connection held(gateway_->address());
  held.send(charge("held", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  const auto until = std::chrono::steady_clock::now() + patience;
  while (read("/v1/keys?state=in_progress")["keys"].items.empty() &&
         std::chrono::steady_clock::now() < until) {
    back_off();
  }
  ASSERT_EQ(read("/v1/keys?state=in_progress")["keys"].items.size(), 1U);
  gateway_->kill();
  gateway_->restart();
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  provider_->release("h");
  while (read("/v1/keys?state=failed_retryable")["keys"].items.empty() &&
         std::chrono::steady_clock::now() < until) {
    back_off();
  }
  EXPECT_EQ(read("/v1/keys?state=failed_retryable")["keys"].items.size(), 1U);
  EXPECT_EQ(read("/v1/keys?state=in_progress")["keys"].items.size(), 0U);
  EXPECT_EQ(read("/v1/keys?state=unknown")["keys"].items.size(), 0U);
}

TEST_F(ShadowLive, S22_the_command_prints_the_report) {
  ask(charge("k"));
  report(1);
  ask(charge("k"));
  report(2);
  const auto idem = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"shadow", "report"});
    return run_program(built_program("idem"), words,
                       {"IDEM_ADMIN_URL=http://" + gateway_->admin()});
  };
  const auto table = idem({});
  EXPECT_EQ(table.exit_code, 0) << table.output;
  for (const auto* part : {"/{rest...}", "acme", "127.0.0.1", "duplicates", "POST /charges",
                           "1 would get the stored answer and not run again"}) {
    EXPECT_NE(table.output.find(part), std::string::npos) << part << table.output;
  }
  const auto json = parse_json(idem({"--json", "--route", "/{rest...}"}).output).value_or(Json{});
  EXPECT_EQ(json["routes"].items.at(0)["duplicates"].integer, 1);
  EXPECT_EQ(idem({"--route", "none"}).exit_code, 4);
}

}  // namespace
}  // namespace idem::test
