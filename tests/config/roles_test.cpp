#include "config/reading.hpp"
#include "support/admin.hpp"
#include "support/gateway_fixture.hpp"

/// Whose settings they are: a worker's file is checked as one, and what has no effect is refused.
namespace idem::test {
namespace {

class ConfigRoles : public testing::Test {
 protected:
  void SetUp() override { IDEM_NEED_PROGRAM("idem"); }
  std::string file(const std::string& text) const {
    const auto path = (dir_.path() / "idem.yaml").string();
    write_text(path, text);
    return path;
  }
  Ran idem(std::vector<std::string> words, std::vector<std::string> environment = {}) const {
    return run_program(built_program("idem"), std::move(words), std::move(environment));
  }
  Ran check(const std::string& text, std::vector<std::string> more = {},
            std::vector<std::string> environment = {}) const {
    more.insert(more.begin(), {"config", "check", "--config", file(text)});
    return idem(std::move(more), std::move(environment));
  }
  static void expect_has(const Ran& ran, const std::string& part) {
    EXPECT_NE(ran.output.find(part), std::string::npos) << ran.output << "\nhas no: " << part;
  }
  TempDir dir_;
};

const std::string workers =
    "store: postgres://idem@db/idem\nadmin: 127.0.0.1:9901\n"
    "destinations:\n  - {name: a, url: \"http://h/\", deduplicates: 1h}\n";
const std::string gateways =
    "upstream: {url: \"http://127.0.0.1:9\"}\nscope: {from: authorization}\n";

TEST_F(ConfigRoles, a_workers_file_is_checked_as_one) {
  const auto guessed = check(workers);
  EXPECT_EQ(guessed.exit_code, 0) << guessed.output;
  expect_has(guessed, "idem worker");
  EXPECT_EQ(check(workers, {"--role", "worker"}).exit_code, 0);
  EXPECT_EQ(check(workers, {"--role", "gateway"}).exit_code, 2);
  EXPECT_EQ(check(workers + "scope: {from: authorization}\n", {"--role", "worker"}).exit_code, 0);
  const auto gateway = check("scope: {from: authorization}\nstore: \"memory:\"\n");
  EXPECT_EQ(gateway.exit_code, 2);
  expect_has(gateway, "there is no upstream");
  expect_has(gateway, "--role worker");
}

TEST_F(ConfigRoles, a_workers_file_is_known_by_what_it_says_itself) {
  const auto shared = check(workers, {}, {"IDEM_LISTEN=127.0.0.1:1", "IDEM_SCOPE=authorization"});
  EXPECT_EQ(shared.exit_code, 0) << shared.output;
  expect_has(shared, "idem worker");
  const auto neutral =
      check("store: \"memory:\"\n", {}, {"IDEM_LISTEN=127.0.0.1:1", "IDEM_SCOPE=static:a"});
  EXPECT_EQ(neutral.exit_code, 2) << "a gateway of these variables does not start";
  expect_has(neutral, "there is no upstream");
  const auto named = check(workers + "routes:\n  - {match: {path: /a}, name: a}\n");
  EXPECT_EQ(named.exit_code, 0) << named.output;
  expect_has(named, "idem worker");
  const auto served = check(workers + "routes:\n  - {match: {path: /a}, mode: wait}\n");
  EXPECT_EQ(served.exit_code, 2) << "a route with a gateway's setting is a gateway's";
  expect_has(served, "there is no upstream");
  const std::string bare = "store: \"memory:\"\n";
  const auto print = [&](const char* role) {
    return idem({"config", "print", "--role", role, "--config", file(gateways + bare)});
  };
  expect_has(print("gateway"), "upstream:");
  EXPECT_EQ(print("worker").exit_code, 2);
  const auto of_a_worker = idem({"config", "print", "--role", "worker", "--config", file(bare)});
  EXPECT_EQ(of_a_worker.exit_code, 0) << of_a_worker.output;
  EXPECT_EQ(of_a_worker.output.find("listen:"), std::string::npos) << of_a_worker.output;
}

TEST_F(ConfigRoles, what_a_start_would_refuse_is_no_ok) {
  const std::string destination =
      "destinations:\n  - {name: a, url: \"http://h/\", deduplicates: 1h";
  for (const char* const store :
       {"\"memory:\"", "redis://db:6379", "dynamodb://idem?region=eu-central-1"}) {
    const auto ran = check("store: " + std::string(store) + "\n" + destination + "}\n");
    EXPECT_EQ(ran.exit_code, 2) << ran.output;
    expect_has(ran, ":3:5: destinations: this store has no outbox");
  }
  const auto ca = check("store: postgres://db/idem\n" + destination + ", ca: /no/ca.pem}\n");
  EXPECT_EQ(ca.exit_code, 2) << ca.output;
  expect_has(ca, "/no/ca.pem");
  const auto provider = [&](const std::string& more) {
    return check(gateways +
                 "store: \"memory:\"\nproviders:\n  - name: bank\n    found: [\"200\"]\n" +
                 "    url: \"http://h/?o={operation}\"\n" + more);
  };
  EXPECT_EQ(provider("").exit_code, 0) << provider("").output;
  const auto its = provider("    ca: /no/ca.pem\n");
  EXPECT_EQ(its.exit_code, 2) << its.output;
  expect_has(its, ":8:9: ");
  for (const std::string part : {"content_type: \"text/plain\\r\\nSet-Cookie: a=b\"",
                                 "headers: [\"Location: /a\\r\\nSet-Cookie: a=b\"]"}) {
    const auto cut = provider("    replay: {" + part + "}\n");
    EXPECT_EQ(cut.exit_code, 2) << cut.output;
    expect_has(cut, ":8:");
  }
  const auto by_certificate = check(workers + "scope: {from: mtls}\n", {"--role", "worker"});
  EXPECT_EQ(by_certificate.exit_code, 0) << by_certificate.output;
}

TEST_F(ConfigRoles, settings_of_a_gateway_are_refused_in_a_workers_file_at_their_place) {
  cli::GatewayFlags flags;
  std::size_t seen = 0;
  for (const auto& setting : cli::settings_of(flags)) {
    if (config::is_gateways(setting)) ++seen;
  }
  EXPECT_GE(seen, 40U);
  const auto refused = idem({"worker", "--config", file(workers + "listen: 127.0.0.1:8080\n")});
  EXPECT_EQ(refused.exit_code, 2);
  expect_has(refused, "idem.yaml:5:9: listen is a setting of idem gateway");
  const auto section = check(workers + "quotas: {active_keys: 5}\n", {"--role", "worker"});
  EXPECT_EQ(section.exit_code, 2);
  expect_has(section, ":5:23: quotas.active_keys is a setting of idem gateway");
  const auto route = check(workers + "routes:\n  - {match: {path: /a}, name: a, mode: wait}\n",
                           {"--role", "worker"});
  EXPECT_EQ(route.exit_code, 2);
  expect_has(route, ":6:40: mode is for routes of idem gateway");
  const auto flag = idem({"worker", "--listen", "127.0.0.1:1"});
  EXPECT_EQ(flag.exit_code, 2);
  expect_has(flag, "--listen");
}

TEST_F(ConfigRoles, unknown_variables_are_warned_of) {
  const std::vector<std::string> environment{"IDEM_UPSTRAEM=http://x", "IDEM_SERVICE_HOST=10.0.0.1",
                                             "IDEM_PORT_8080_TCP=tcp://10.0.0.1:8080",
                                             "IDEM_OPERATOR=grace"};
  const auto ran = check(gateways + "store: \"memory:\"\n", {}, environment);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  expect_has(ran,
             "IDEM_UPSTRAEM: warning: is no variable of this version and has no effect; did "
             "you mean IDEM_UPSTREAM?");
  for (const char* const known : {"IDEM_SERVICE_HOST", "IDEM_PORT_8080", "IDEM_OPERATOR"}) {
    EXPECT_EQ(ran.output.find(known), std::string::npos) << ran.output;
  }
  // Most of all where the settings are refused.
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"gateway", "--scope", "static:a"}, {"config", "check", "--scope", "static:a"}}) {
    const auto refused = idem(words, environment);
    EXPECT_EQ(refused.exit_code, 2);
    expect_has(refused, "there is no upstream");
    expect_has(refused, "IDEM_UPSTRAEM: warning: is no variable");
  }
  expect_has(check(workers, {}, {"IDEM_ADMIN_TOKENS_OF=t"}),
             "IDEM_ADMIN_TOKENS_OF: warning: is no variable of this version");
  const auto of_a_gateway = check(workers, {"--role", "worker"}, {"IDEM_LISTEN=127.0.0.1:1"});
  EXPECT_EQ(of_a_gateway.exit_code, 0);
  expect_has(of_a_gateway, "IDEM_LISTEN: warning: is a setting of idem gateway");
}

TEST_F(ConfigRoles,
       an_admin_listener_for_other_machines_needs_a_login_and_is_warned_of_without_tls) {
  const std::string text = gateways + "store: \"memory:\"\nadmin: ";
  for (const char* const open : {"0.0.0.0:9901", "\"[::]:9901\"", "10.1.2.3:9901", "idem.lan:9901",
                                 "127.example.org:9901"}) {
    const auto refused = check(text + open + "\n");
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    expect_has(refused, ":4:8: ");
    expect_has(refused, "no login is configured");
    const auto ran = check(text + open + "\nadmin_tokens: tokens\n");
    EXPECT_EQ(ran.exit_code, 0) << ran.output;
    expect_has(ran, ":4:8: warning: ");
    expect_has(ran, "has no TLS");
  }
  for (const char* const closed : {"127.0.0.1:9901", "\"[::1]:9901\"", "localhost:9901"}) {
    EXPECT_EQ(check(text + closed + "\n").output, "ok\n");
  }
}

TEST_F(ConfigRoles, a_workers_help_has_its_own_flags_and_no_others) {
  const auto worker = idem({"worker", "--help"});
  const auto gateway = idem({"gateway", "--help"});
  cli::GatewayFlags flags;
  for (const auto& setting : cli::settings_of(flags)) {
    if (setting.flag.empty()) continue;
    const std::string flag = std::string(setting.flag) + " ";
    EXPECT_NE((gateway.output + " ").find(flag), std::string::npos) << flag;
    EXPECT_EQ(worker.output.find("  " + flag) == std::string::npos, config::is_gateways(setting))
        << flag;
  }
}

TEST_F(ConfigRoles, the_help_names_stores_exit_codes_and_the_version) {
  const auto gateway = idem({"gateway", "--help"});
  for (const char* const store :
       {"sqlite:PATH", "postgres://", "mysql://", "redis://", "rediss://", "redis+cluster://",
        "redis+sentinel://", "dynamodb://", "hybrid:?truth=URL&fast", "memory:"}) {
    expect_has(gateway, store);
  }
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--help"}, {"gateway", "--help"}, {"worker", "--help"}, {"keys", "list", "--help"}}) {
    const auto ran = idem(words);
    EXPECT_EQ(ran.exit_code, 0);
    for (const char* const code :
         {"0 done", "1 failed", "2 wrong", "3 no answer", "4 not", "5 ref"}) {
      expect_has(ran, code);
    }
  }
  const auto wrong = idem({"gatewy"});
  EXPECT_EQ(wrong.exit_code, 2);
  expect_has(wrong, "there is no command \"gatewy\"");
  expect_has(idem({"reconcile", "--help"}), "exit code 5");
  expect_has(idem({"reconcile", "--help"}), "one JSON document");
  EXPECT_EQ(idem({"status", "--help"}).output.find("--operator"), std::string::npos);
  const auto version = idem({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.output, idem({"version"}).output);
  for (const char* const command : {"gateway", "worker", "keys", "outbox", "dlq", "reconcile",
                                    "migrate", "config", "version"}) {
    expect_has(idem({"--help"}), command);
  }
}

TEST_F(ConfigRoles, migrate_makes_a_store_and_prints_its_id) {
  const auto path = (dir_.path() / "idem.db").string();
  const auto made = idem({"migrate", "--store", "sqlite:" + path});
  EXPECT_EQ(made.exit_code, 0) << made.output;
  expect_has(made, path + ": there was no store; a new, empty one was created");
  const auto again = idem({"migrate"}, {"IDEM_STORE=sqlite:" + path});
  EXPECT_EQ(again.exit_code, 0) << again.output;
  expect_has(again, path + ": the schema is that of this version");
  const auto id_of = [](const Ran& ran) { return ran.output.substr(ran.output.find("store_id ")); };
  EXPECT_EQ(id_of(made), id_of(again));
  EXPECT_EQ(idem({"migrate", "--store", "sqlite://x.db"}).exit_code, 2);
  EXPECT_EQ(idem({"migrate", "--store", "sqlite:" + path + "/no/x.db"}).exit_code, 1);
  expect_has(idem({"migrate"}), "there is no store");
  EXPECT_EQ(idem({"migrate"}).exit_code, 2);
  const auto word = idem({"migrate", "sqlite:" + path}, {"IDEM_STORE=sqlite:/no/x.db"});
  EXPECT_EQ(word.exit_code, 0) << word.output;
  EXPECT_EQ(idem({"migrate", "sqlite:" + path, "--store", "memory:"}).exit_code, 2);
}

/// Print and schema name every setting of the table, set or not.
TEST_F(ConfigRoles, print_has_every_setting_of_the_table) {
  const auto text = idem({"config", "print", "--config", file(gateways)}).output;
  cli::GatewayFlags flags;
  for (const auto& setting : cli::settings_of(flags)) {
    if (setting.shape.kind == config::Shape::Kind::maps) continue;
    const std::string path(setting.path);
    const auto name = path.substr(path.rfind('.') + 1);
    const bool is_set = text.find(name + ": ") != std::string::npos;
    const bool is_listed_as_unset = text.find("# " + path + " is not set\n") != std::string::npos;
    EXPECT_TRUE(is_set || is_listed_as_unset) << path;
  }
  for (const std::string& one : {gateways, workers}) {
    const auto first = idem({"config", "print", "--config", file(one)});
    ASSERT_EQ(first.exit_code, 0) << first.output;
    const auto second = idem({"config", "print", "--config", file(first.output)});
    EXPECT_EQ(second.output, first.output) << "it gives the same again";
  }
}

}  // namespace
}  // namespace idem::test
