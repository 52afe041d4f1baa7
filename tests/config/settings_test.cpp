#include "config/reading.hpp"
#include "support/scripted_upstream.hpp"
#include "workers/reconciler.hpp"

#include <idem/limits.hpp>

#include <mutex>

/// The gateway options that the settings of a file give.
namespace idem::test {
namespace {

using namespace std::chrono_literals;

class ConfigSettings : public testing::Test {
 protected:
  std::expected<cli::ReadSettings, std::vector<std::string>> read(const std::string& text) {
    write_text(
        dir_.path() / "idem.yaml",
        "upstream: {url: \"http://127.0.0.1:9\"}\nscope: {from: \"" + scope_ + "\"}\n" + text);
    return read_config(dir_.path() / "idem.yaml");
  }
  gateway::Route rest(const std::string& text) {
    const auto settings = read(text);
    EXPECT_TRUE(settings.has_value()) << joined(settings.error());
    return settings ? settings->options.settings.routes.all().back() : gateway::Route{};
  }
  std::string refusal(const std::string& text) {
    const auto settings = read(text);
    return settings ? "accepted" : joined(settings.error());
  }
  std::string scope_ = "authorization";
  TempDir dir_;
};

TEST_F(ConfigSettings, the_full_example_is_read_field_by_field) {
  const auto read = read_config(corpus("right/contract.yaml"));
  ASSERT_TRUE(read.has_value()) << joined(read.error());
  const auto& settings = read->options.settings;
  EXPECT_EQ(read->options.listen, "127.0.0.1:8080");
  EXPECT_EQ(read->options.admin, "127.0.0.1:9901");
  EXPECT_EQ(read->options.store, "sqlite:/var/lib/idem/idem.db");
  EXPECT_EQ(settings.scope.text, "header:X-Tenant-Id");
  ASSERT_EQ(settings.routes.all().size(), 4U);
  const auto& pay = settings.routes.find("POST", "/v1/payments");
  EXPECT_EQ(pay.name, "create-payment");
  EXPECT_EQ(pay.formerly, std::vector<std::string>{"POST /v1/payments"});
  EXPECT_EQ(pay.mode, gateway::Mode::wait);
  EXPECT_EQ(pay.fingerprint.exclude, std::vector<std::string>{"/metadata/client_time"});
  EXPECT_EQ(pay.fingerprint.headers, std::vector<std::string>{"X-Api-Version"});
  EXPECT_EQ(pay.answers.statuses.at(409), StatusRule::store);
  EXPECT_TRUE(pay.answers.errors_rolled_back);
  EXPECT_EQ(pay.lease, 60s);
  const auto& quotes = settings.routes.find("POST", "/v1/quotes/7");
  EXPECT_EQ(quotes.operation("POST", "/v1/quotes/7"), "quotes");
  EXPECT_FALSE(quotes.require_key);
  const auto& other = settings.routes.find("GET", "/v1/quotes/7");
  EXPECT_EQ(other.operation("GET", "/v1/quotes/7"), "GET /v1/quotes/7");
  EXPECT_EQ(other.mode, gateway::Mode::conflict);
}

TEST_F(ConfigSettings, the_default_in_a_row_is_that_of_the_routes_member) {
  const gateway::Route route = rest("");
  std::size_t members = 0;
  for (const auto& row : cli::route_settings) {
    std::visit(
        [&]<class Member>(Member member) {
          if constexpr (!std::is_same_v<Member, std::monostate>) {
            EXPECT_EQ(route.*member, gateway::Route{}.*member) << row.path;
            ++members;
          }
        },
        row.member);
  }
  EXPECT_GT(members, 10U);
}

TEST_F(ConfigSettings, a_quota_of_zero_is_none) {
  const auto by_default = read("");
  ASSERT_TRUE(by_default) << joined(by_default.error());
  ASSERT_TRUE(by_default->options.settings.quota);
  EXPECT_EQ(by_default->options.settings.quota->stored_bytes, limits::stored_bytes_default);
  const auto without = read("quotas: {stored_bytes: 0}\n");
  ASSERT_TRUE(without) << joined(without.error());
  EXPECT_FALSE(without->options.settings.quota);
}

/// A provider's events, as they are right but for what is added.
class ConfigEvents : public ConfigSettings {
 protected:
  ConfigEvents() {
    write_text(secret_, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\r\n");
    std::filesystem::permissions(secret_, std::filesystem::perms::owner_read);
  }
  std::string events(const std::string& more) {
    return "providers:\n  - name: bank\n    events:\n      signature: standard\n"
           "      operation: /operation\n      secret_files: [" +
           secret_.string() + "]\n" + more;
  }
  const std::filesystem::path secret_ = dir_.path() / "secret";
};

TEST_F(ConfigEvents, rules_that_fit_no_event_are_refused) {
  EXPECT_EQ(refusal(events("      found: [/type=charge.succeeded]\n")), "accepted")
      << "and the line of a secret may end as it does elsewhere";
  for (const auto* part : {"found", "failed"}) {
    const auto complaint = refusal(
        events(std::string("      fence: /fence\n      ") + part + ": [\"200 /type=a\"]\n"));
    EXPECT_NE(complaint.find("fits no event, which has no status"), complaint.npos) << complaint;
  }
  const auto nothing = refusal(events(""));
  EXPECT_NE(nothing.find("no event would have a meaning"), nothing.npos) << nothing;
}

TEST_F(ConfigEvents, a_failure_needs_its_attempt) {
  const std::string failed = "      failed: [/type=charge.failed]\n";
  const auto complaint = refusal(events(failed));
  EXPECT_NE(complaint.find("9:16: a failed attempt says nothing about the next one"),
            complaint.npos)
      << complaint;
  EXPECT_EQ(refusal(events(failed + "      fence: /fence\n")), "accepted");
}

TEST_F(ConfigEvents, a_key_alone_may_be_that_of_two_scopes_or_operations) {
  const std::string asked =
      "providers:\n  - {name: bank, found: [2xx], url: \"http://bank/?key={key}";
  const auto complaint = refusal(asked + "\"}\n");
  EXPECT_NE(complaint.find("two scopes may have the same key; write {scope} or {fence} too"),
            complaint.npos)
      << complaint;
  EXPECT_EQ(refusal(asked + "&of={scope}\"}\n"), "accepted");
  EXPECT_EQ(refusal(asked + "&fence={fence}\"}\n"), "accepted");
  const std::string event_rules = "      found: [/type=a]\n      key: /key\n";
  const auto events_refusal = refusal(events(event_rules));
  EXPECT_NE(
      events_refusal.find("two scopes or operations may have the same key; write events.fence"),
      events_refusal.npos)
      << events_refusal;
  EXPECT_EQ(refusal(events(event_rules + "      fence: /fence\n")), "accepted");
  const std::string one_operation = "key: {scope: tenant}\n";
  EXPECT_NE(refusal(one_operation + events(event_rules)), "accepted");
  scope_ = "static:acme";
  EXPECT_NE(refusal(events(event_rules)), "accepted");
  EXPECT_EQ(refusal(one_operation + events(event_rules)), "accepted");
}

class ConfigAsking : public ConfigSettings {
 protected:
  /// The provider's reply about a record with this reference and fence 7, asked at this target.
  auto ask(const std::string& target, const std::string& reference, const std::string& key = {}) {
    const auto settings = read("providers:\n  - {name: bank, url: \"http://" + bank_.address() +
                               target + "\", found: [2xx]}\n");
    EXPECT_TRUE(settings.has_value()) << joined(settings.error());
    Record record;
    record.attempt = Attempt{7, {}};
    record.scope = "acme";
    record.upstream_reference = reference;
    return settings->options.providers.at("bank")->ask(record, key);
  }
  /// Of the questions from now on; the provider may still be sending the one before.
  void answer_with(std::string answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  std::string answer() {
    const std::lock_guard lock(mutex_);
    return answer_;
  }
  std::mutex mutex_;
  std::string answer_ = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
  ScriptedUpstream bank_{[this](UpstreamConnection& connection) {
    (void)connection.read_request();
    connection.write(answer());
  }};
};

TEST_F(ConfigAsking, a_provider_is_asked_about_the_record_and_its_attempt) {
  ASSERT_TRUE(ask("/charges/{reference}?fence={fence}", "a/../b"));
  EXPECT_TRUE(bank_.received().at(0).starts_with("GET /charges/a%2F..%2Fb?fence=7 HTTP/1.1\r\n"))
      << bank_.received().at(0);
}

TEST_F(ConfigAsking, a_clients_key_is_one_part_of_the_url) {
  ASSERT_TRUE(ask("/charges?key={key}&of={scope}", "", "a/b&c=d ?#%"));
  EXPECT_TRUE(bank_.received().at(0).starts_with(
      "GET /charges?key=a%2Fb%26c%3Dd%20%3F%23%25&of=acme HTTP/1.1\r\n"))
      << bank_.received().at(0);
  for (const auto* none : {"", ".", ".."}) {
    const auto reply = ask("/{scope}/{key}", "ch_1", none);
    ASSERT_FALSE(reply) << none;
    EXPECT_TRUE(reply.error().why.contains("no client's key")) << reply.error().why;
  }
  EXPECT_EQ(bank_.connections(), 1);
}

TEST_F(ConfigAsking, a_reference_of_dots_is_none) {
  for (const auto* reference : {"", ".", ".."}) {
    const auto reply = ask("/charges/{reference}", reference);
    ASSERT_FALSE(reply) << reference;
    EXPECT_TRUE(reply.error().why.contains("no upstream reference")) << reply.error().why;
  }
  EXPECT_EQ(bank_.connections(), 0) << "an answer about all charges would be one about this one";
}

TEST_F(ConfigAsking, an_answer_that_would_not_be_stored_is_not_read) {
  answer_with("HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\nConnection: close\r\n\r\n" +
              std::string(1'048'577, ' '));
  EXPECT_FALSE(ask("/{operation}", ""));
  answer_with("HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\nConnection: close\r\n\r\n" +
              std::string(1'048'576, ' '));
  EXPECT_TRUE(ask("/{operation}", ""));
}

TEST_F(ConfigSettings, every_setting_of_a_route_arrives) {
  const auto read = read_config(corpus("right/everything.yaml"));
  ASSERT_TRUE(read.has_value()) << joined(read.error());
  const auto& route = read->options.settings.routes.find("PUT", "/v2/accounts/a/transfers");
  EXPECT_EQ(route.name, "transfers");
  EXPECT_EQ(route.methods, (std::vector<std::string>{"POST", "PUT", "X-SPECIAL"}));
  EXPECT_EQ(route.enforce, gateway::Enforce::on);
  EXPECT_TRUE(route.require_key);
  EXPECT_FALSE(route.allow_method_override);
  EXPECT_FALSE(route.pin_logins);
  EXPECT_EQ(route.answers.preset, Preset::lenient);
  EXPECT_EQ(route.answers.statuses,
            (std::map<int, StatusRule>{
                {201, StatusRule::store}, {402, StatusRule::release}, {500, StatusRule::unknown}}));
  EXPECT_EQ(route.fingerprint.include, (std::vector<std::string>{"/amount", "/to/a~1b", "/a~0b"}));
  EXPECT_EQ(route.upstream_timeout, 500ms);
  EXPECT_EQ(route.lease, 1s);
  EXPECT_EQ(route.lease_policy, LeasePolicy::rerun);
  EXPECT_EQ(route.retention, 1h);
  EXPECT_EQ(route.tombstone, 0s);
  EXPECT_EQ(route.wait_max, 0s);
  EXPECT_EQ(route.request_body_bytes_max, 65536U);
  EXPECT_EQ(route.response_body_bytes_max, 0U);
  EXPECT_FALSE(route.store_body);
  EXPECT_EQ(route.replay_fields, (std::vector<std::string>{"Set-Cookie", "WWW-Authenticate"}));
  EXPECT_FALSE(route.separate_dispatch_mark);

  const auto& settings = read->options.settings;
  const auto& inherited = settings.routes.find("GET", "/");
  EXPECT_EQ(inherited.upstream_timeout, 1s);
  EXPECT_EQ(inherited.answers.preset, Preset::stripe);
  EXPECT_TRUE(inherited.separate_dispatch_mark);
  EXPECT_FALSE(inherited.require_key);
  EXPECT_TRUE(inherited.allow_method_override);
  EXPECT_TRUE(inherited.pin_logins);
  EXPECT_TRUE(inherited.in_shadow());
  EXPECT_EQ(inherited.lease, 2min);
  EXPECT_EQ(settings.key.bytes_min, 16U);
  EXPECT_TRUE(settings.key.reject_pii);
  EXPECT_EQ(settings.key_time, KeyTimeRule::required);
  EXPECT_TRUE(settings.honours_first_sent);
  EXPECT_EQ(settings.key_forward.name, "X-Dedupe-Key");
  EXPECT_EQ(read->options.threads, 4U);
  EXPECT_EQ(read->options.connections, 100U);
}

TEST_F(ConfigSettings, T32_an_empty_list_is_printed_as_one_because_it_removes_a_default) {
  const auto given = read_config(corpus("right/empty_lists.yaml"));
  ASSERT_TRUE(given.has_value()) << joined(given.error());
  write_text(dir_.path() / "printed.yaml", cli::print_settings(given->given));
  const auto printed = read_config(dir_.path() / "printed.yaml");
  ASSERT_TRUE(printed.has_value()) << joined(printed.error());
  for (const auto* read : {&*given, &*printed}) {
    const auto& routes = read->options.settings.routes;
    EXPECT_TRUE(routes.find("POST", "/withheld").replay_fields.empty());
    EXPECT_EQ(routes.find("POST", "/replayed").replay_fields.size(), 1U);
  }
}

TEST_F(ConfigSettings, T06_the_life_of_an_answer_and_of_a_lease_are_two_settings) {
  const auto before = rest("");
  const auto longer_answer = rest("defaults: {retention: 48h}\n");
  EXPECT_EQ(longer_answer.retention, 48h);
  EXPECT_EQ(longer_answer.lease, before.lease);
  const auto longer_lease = rest("defaults: {lease: 10m}\n");
  EXPECT_EQ(longer_lease.lease, 10min);
  EXPECT_EQ(longer_lease.retention, before.retention);
  EXPECT_EQ(rest("defaults: {lease: 40s, retention: 1s}\n").retention, 1s)
      << "an answer may be forgotten before a lease would end";
  EXPECT_NE(refusal("defaults: {ttl: 5m}\n").find("\"ttl\" is no setting"), std::string::npos);
}

TEST_F(ConfigSettings, T07_no_value_of_a_lease_means_none) {
  for (const auto* lease :
       {"0", "0s", "0ms", "-1s", "~", "\"\"", "false", "none", "[]", "{}", ""}) {
    for (const std::string section :
         {"defaults: {lease: ", "routes:\n  - {match: {path: /a}, lease: "}) {
      const auto complaint = refusal(section + lease + "}\n");
      EXPECT_EQ(std::count(complaint.begin(), complaint.end(), '\n'), 1)
          << lease << ": " << complaint;
      EXPECT_NE(complaint.find("idem.yaml:"), std::string::npos) << complaint;
    }
  }
}

TEST_F(ConfigSettings, T50_times_of_zero_and_below_are_refused) {
  for (const auto* time : {"0", "0s", "-1s", ".nan", ".inf", "1e3"}) {
    for (const std::string section :
         {"defaults: {retention: ", "routes:\n  - {match: {path: /a}, retention: ",
          "defaults: {tombstone: ", "routes:\n  - {match: {path: /a}, tombstone: ",
          "routes:\n  - {match: {path: /a}, timeout: "}) {
      const auto complaint = refusal(section + time + "}\n");
      EXPECT_EQ(std::count(complaint.begin(), complaint.end(), '\n'), 1)
          << section << time << ": " << complaint;
    }
  }
}

TEST_F(ConfigSettings, an_acknowledged_tombstone_of_zero_is_accepted) {
  EXPECT_EQ(rest("defaults: {tombstone: 0, accept_rerun_after_expiry: true}\n").tombstone, 0s);
}

TEST_F(ConfigSettings, a_lease_must_outlast_the_timeout_of_each_route) {
  EXPECT_NE(refusal("routes:\n  - {match: {path: /a}, lease: 34s}\n").find(":4:32: "),
            std::string::npos);
  EXPECT_EQ(refusal("routes:\n  - {match: {path: /a}, timeout: 54s}\n"), "accepted");
  EXPECT_EQ(refusal("routes:\n  - {match: {path: /a}, timeout: 1s, lease: 2s}\n"), "accepted");
}

TEST(ConfigPage, T32_the_page_equals_the_programs_output) {
  EXPECT_EQ(read_file(std::filesystem::path(IDEM_SOURCE_DIR) / "docs/configuration.md"),
            cli::settings_page())
      << "write it anew: idem config docs > docs/configuration.md";
}

}  // namespace
}  // namespace idem::test
