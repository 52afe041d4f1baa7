#include <fmt/format.h>

#include <csignal>
#include <fstream>
#include <string>

#include "support/admin.hpp"

/// SIGHUP reads the configuration again: all of it applies, or nothing.
namespace idem::test {
namespace {

class Reload : public Live {
 protected:
  void SetUp() override {
    write("");
    Live::SetUp();
  }
  std::vector<std::string> flags() const override { return {"--config", file().string()}; }

  std::filesystem::path file() const { return dir_.path() / "idem.yaml"; }
  void write(std::string_view text) const {
    std::ofstream(file(), std::ios::trunc) << "# settings\n" << text;
  }

  /// Asks for a reload; the event that came of it.
  std::string reload(std::string_view event) {
    auto& process = gateway_->process();
    const auto before = process.output().size();
    process.signal(SIGHUP);
    const auto line = process.wait_for_line(std::string(event) + " ", patience, before);
    return line.value_or("no such event");
  }
  std::string outcome(std::string_view key, std::string_view faults = {}) {
    return std::string(ask(charge(key, faults)).get("Idempotency-Outcome").value_or("none"));
  }
};

TEST_F(Reload, the_new_file_applies_from_then_on) {
  EXPECT_EQ(ask(charge("short")).status, 201);
  write("key: {min_length: 10}\n");
  EXPECT_EQ(ask(charge("other")).status, 201) << "a file is read when it is asked for";
  reload("reloaded");
  EXPECT_TRUE(is_problem(ask(charge("tiny")), 400, "key_invalid"));
  EXPECT_EQ(ask(charge("long-enough")).status, 201);
}

TEST_F(Reload, says_before_it_applies_what_changes_and_what_that_does_to_records) {
  write("defaults: {retention: 48h}\n");
  const auto at = gateway_->process().output().size();
  reload("reloaded");
  const auto log = gateway_->process().output().substr(at);
  const auto differs = log.find(
      "setting_differs name=defaults.retention before=24h after=48h "
      "needs=reload records=\"Records that exist keep the time");
  ASSERT_NE(differs, std::string::npos) << log;
  EXPECT_LT(differs, log.find(" reloaded "));
}

// Otherwise the log would say "reloaded", and the old provider would be asked.
TEST_F(Reload, a_changed_provider_needs_a_restart) {
  write("providers:\n  - {name: p, found: [2xx], url: \"http://bank/?at={operation}\"}\n");
  const auto complaint = reload("reload_failed");
  EXPECT_NE(complaint.find("a restart is needed for providers.p"), std::string::npos) << complaint;
}

TEST_F(Reload, the_command_shows_the_changes_and_then_applies_them) {
  const auto config = [&](std::vector<std::string> rest) {
    std::vector<std::string> arguments{"config"};
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    arguments.insert(arguments.end(), {"--admin-url", "http://" + gateway_->admin()});
    return run_program(built_program("idem"), std::move(arguments));
  };
  auto ran = config({"changes"});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(ran.output, "no setting differs\n");
  write("key: {min_length: 10}\n");
  ran = config({"changes"});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_NE(ran.output.find("key.min_length: 1 -> 10\n  Counts for new keys."), std::string::npos)
      << ran.output;
  const auto page = send_once(
      gateway_->admin(),
      {.method = "GET", .target = "/v1/settings/changes", .fields = {{"Host", gateway_->admin()}}});
  EXPECT_EQ(page.status, 200) << page.raw;
  EXPECT_EQ(parse_json(page.body).value_or(Json{})["changes"].items.size(), 1U) << page.raw;
  EXPECT_EQ(ask(charge("short")).status, 201) << "nothing was applied";
  EXPECT_EQ(config({"reload"}).exit_code, 2) << "a decision has a reason";
  ran = config({"reload", "--reason", "ticket 4711"});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_NE(ran.output.find("key.min_length: 1 -> 10"), std::string::npos) << ran.output;
  EXPECT_TRUE(is_problem(ask(charge("tiny")), 400, "key_invalid"));
  EXPECT_EQ(config({"changes"}).output, "no setting differs\n");

  write("key: [unfinished\n");
  ran = config({"changes"});
  EXPECT_EQ(ran.exit_code, 5) << ran.output;
  EXPECT_EQ(ran.output.find("no setting differs"), std::string::npos) << ran.output;
  EXPECT_NE(ran.output.find("would be refused, and the gateway keeps the settings that it has"),
            std::string::npos)
      << ran.output;

  write("key: {min_length: 12}\nthreads: 3\n");
  ran = config({"changes"});
  EXPECT_EQ(ran.exit_code, 5) << ran.output;
  EXPECT_NE(ran.output.find("threads: 0 -> 3 (needs a restart)"), std::string::npos) << ran.output;
  ran = config({"reload", "--reason", "ticket 4711"});
  EXPECT_EQ(ran.exit_code, 5) << ran.output;
  EXPECT_NE(ran.output.find("a restart is needed for threads"), std::string::npos) << ran.output;
  EXPECT_EQ(config({"changes"}).exit_code, 5) << "nothing of it was applied";
  gateway_->kill();
  EXPECT_EQ(config({"changes"}).exit_code, 3);
}

// To advise a new key about one that ran would be to advise a second payment.
TEST_F(Reload, S13_the_rules_for_keys_apply_to_new_keys_only) {
  const auto first = ask(charge("short"));
  const auto email = ask(charge("jane@example.org"));
  ASSERT_EQ(ask(charge("lost", "drop-after")).status, 502);
  write("key: {min_length: 10, syntax: structured, reject_pii: true}\n");
  reload("reloaded");
  EXPECT_TRUE(replays(first, ask(charge("short"))));
  EXPECT_TRUE(replays(email, ask(charge("jane@example.org"))));
  EXPECT_TRUE(is_problem(ask(charge("lost")), 409, "outcome_unknown"));
  EXPECT_TRUE(is_problem(ask(charge("short", "", R"({"amount":1})")), 422, "key_reused"));
  const auto fresh = ask(charge("tiny"));
  EXPECT_TRUE(is_problem(fresh, 400, "key_invalid"));
  EXPECT_EQ(json_text(fresh.body, "retry"), "new_key_safe");
  EXPECT_EQ(effects("short"), 1);
}

TEST_F(Reload, S02_a_field_that_carried_keys_is_not_dropped_while_there_are_records) {
  write("key: {headers: [Idempotency-Key, X-Key]}\n");
  reload("reloaded");
  auto put = charge("k");
  put.method = "PUT";
  ask(put);
  write("key: {headers: [x-key]}\n");
  const auto complaint = reload("reload_failed");
  EXPECT_NE(complaint.find("Idempotency-Key"), std::string::npos) << complaint;
  ask(put);
  EXPECT_EQ(provider_->of_key("k").arrivals, 1) << "it still counts as keyed";
  EXPECT_EQ(gateway_->terminate(), 0);
  gateway_->restart();
  EXPECT_FALSE(gateway_->running()) << "nor at a start";
}

TEST_F(Reload, S10_S13_a_new_fingerprint_rule_keeps_the_stored_answers) {
  const auto body = [](int note) { return fmt::format(R"({{"amount":1,"note":{}}})", note); };
  const auto rule = [](std::string_view pointer) {
    return fmt::format(
        "routes:\n  - {{match: {{path: /charges}}, fingerprint: {{exclude: [{}]}}}}\n", pointer);
  };
  const auto first = ask(charge("k", "", body(1)));
  write(rule("/note"));
  reload("reloaded");
  EXPECT_TRUE(replays(first, ask(charge("k", "", body(1))))) << "its record knows no rule";
  const auto other = ask(charge("k", "", body(2)));
  EXPECT_TRUE(is_problem(other, 422, "key_reused"));
  EXPECT_EQ(json_text(other.body, "retry"), "never") << "by today's rule it is the same request";

  const auto ruled = ask(charge("r", "", body(1)));
  EXPECT_TRUE(replays(ruled, ask(charge("r", "", body(2)))));
  EXPECT_EQ(json_text(ask(charge("r", "", R"({"amount":2})")).body, "retry"), "new_key_safe");
  write(rule("/memo"));
  reload("reloaded");
  EXPECT_EQ(json_text(ask(charge("r", "", body(1))).body, "retry"), "never")
      << "the former rule's digest of it cannot be computed any more";
  EXPECT_EQ(effects("r"), 1);
}

TEST_F(Reload, a_wrong_file_changes_nothing_and_is_reported_with_its_place) {
  write("key: {min_length: 10}\ndefaults: {preset: strip}\n");
  const auto complaint = reload("reload_failed");
  EXPECT_NE(complaint.find("idem.yaml:3:20: "), std::string::npos) << complaint;
  EXPECT_NE(complaint.find("did you mean stripe?"), std::string::npos) << complaint;
  EXPECT_EQ(ask(charge("short")).status, 201);
  write("key: {min_length: 10}\n");
  reload("reloaded");
  EXPECT_TRUE(is_problem(ask(charge("tiny")), 400, "key_invalid"));
}

TEST_F(Reload, a_file_that_is_gone_changes_nothing) {
  std::filesystem::remove(file());
  EXPECT_NE(reload("reload_failed").find("cannot be read"), std::string::npos);
  EXPECT_EQ(ask(charge("k")).status, 201);
}

TEST_F(Reload, a_change_that_needs_a_restart_is_refused_as_a_whole) {
  write("key: {min_length: 10}\nthreads: 3\nlimits: {connections: 99}\n");
  const auto complaint = reload("reload_failed");
  EXPECT_NE(complaint.find("a restart is needed for threads, limits.connections"),
            std::string::npos)
      << complaint;
  EXPECT_EQ(ask(charge("short")).status, 201);
}

TEST_F(Reload, a_flag_still_beats_the_file) {
  write("listen: 127.0.0.1:1\nstore: \"memory:\"\nkey: {min_length: 10}\n");
  reload("reloaded");
  EXPECT_TRUE(is_problem(ask(charge("short")), 400, "key_invalid"));
}

// A record is found by its operation's name: one that nobody can find any more would run again.
TEST_F(Reload, T46_a_renamed_operation_needs_its_former_name) {
  const auto first = ask(charge("k"));
  ASSERT_EQ(first.status, 201);
  write("routes:\n  - {name: charges, match: {path: /charges}}\n");
  EXPECT_NE(reload("reload_failed").find("routes: "), std::string::npos);
  EXPECT_TRUE(replays(first, ask(charge("k"))));
  write("routes:\n  - {name: charges, formerly: [\"POST /charges\"], match: {path: /charges}}\n");
  reload("reloaded");
  EXPECT_TRUE(replays(first, ask(charge("k")))) << "under its new name";
  EXPECT_EQ(ask(charge("other")).status, 201);
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Reload, a_request_under_way_keeps_the_settings_it_began_with) {
  Connection before(gateway_->address());
  ASSERT_TRUE(before.send(charge("held", "hold=h,status=500")));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  write("defaults: {preset: stripe}\n");
  reload("reloaded");
  EXPECT_EQ(outcome("new", "status=500"), "stored");
  provider_->release("h");
  EXPECT_EQ(before.read_response().get("Idempotency-Outcome"), "unknown");
}

TEST_F(Reload, every_loop_and_old_connections_use_the_new_settings) {
  std::vector<std::unique_ptr<Connection>> connections;
  for (int i = 0; i < 8; ++i) {
    connections.push_back(std::make_unique<Connection>(gateway_->address()));
    ASSERT_EQ(connections.back()->exchange(charge("k" + std::to_string(i))).status, 201);
  }
  write("key: {min_length: 10}\n");
  reload("reloaded");
  for (auto& connection : connections) {
    EXPECT_TRUE(is_problem(connection->exchange(charge("short")), 400, "key_invalid"));
  }
}

class RoutesLive : public Reload {
 protected:
  void SetUp() override {
    write(routes("ietf"));
    Live::SetUp();
  }
  static std::string routes(const std::string& preset) {
    return "routes:\n"
           "  - name: charges\n"
           "    match: {methods: [POST], path: /charges}\n"
           "    statuses: {402: release}\n"
           "    preset: " +
           preset +
           "\n"
           "  - name: echo\n"
           "    match: {path: \"/{any}\"}\n"
           "    require_key: false\n"
           "    limits: {request_body: 16B}\n";
  }
};

TEST_F(RoutesLive, each_route_has_its_own_settings) {
  EXPECT_EQ(outcome("declined", "refuse=402"), "released");
  EXPECT_TRUE(is_problem(ask(without(charge(""), "Idempotency-Key")), 400, "key_missing"));
  auto echo = without(charge(""), "Idempotency-Key");
  echo.target = "/echo";
  EXPECT_EQ(ask(echo).status, 201);
  EXPECT_TRUE(is_problem(ask(with(echo, "Idempotency-Key", "k")), 413, "body_too_large"));
}

TEST_F(RoutesLive, a_named_route_is_one_operation_for_all_its_paths) {
  auto one = charge("same");
  one.target = "/one";
  one.body = "{}";
  auto two = one;
  two.target = "/two";
  ask(one);
  EXPECT_TRUE(is_problem(ask(two), 422, "key_reused"));
}

TEST_F(RoutesLive, the_settings_of_a_route_may_change_while_it_runs) {
  EXPECT_EQ(outcome("1", "status=500"), "unknown");
  write(routes("stripe"));
  reload("reloaded");
  EXPECT_EQ(outcome("2", "status=500"), "stored");
}

TEST(ConfigAtStart, a_wrong_file_ends_the_program_with_its_places) {
  IDEM_NEED_PROGRAM("idem");
  TempDir dir;
  std::ofstream(dir.path() / "idem.yaml") << "lisen: a\n";
  Gateway gateway({.upstream = "127.0.0.1:9",
                   .store = dir.path() / "idem.db",
                   .flags = {"--config", (dir.path() / "idem.yaml").string()}});
  EXPECT_FALSE(gateway.running());
  EXPECT_EQ(gateway.process().exit_code(), 2);
  EXPECT_NE(gateway.process().output().find("idem.yaml:1:1: \"lisen\" is no setting"),
            std::string::npos);
}

TEST(ConfigAtStart, a_path_that_cannot_be_written_is_named_with_its_place) {
  IDEM_NEED_PROGRAM("idem");
  TempDir dir;
  const auto file = dir.path() / "idem.yaml";
  std::ofstream(file) << "upstream: {url: \"http://127.0.0.1:9\"}\nscope: {from: authorization}\n"
                         "listen: 127.0.0.1:0\nspill_dir: /\nstore: sqlite:/no/such/dir/idem.db\n";
  Process process(
      {.program = built_program("idem"), .arguments = {"gateway", "--config", file.string()}});
  EXPECT_EQ(process.exit_code(), 1);
  EXPECT_NE(process.output().find("idem.yaml:5:8: "), std::string::npos) << process.output();
}

TEST(ConfigAtStart, V31_with_a_log_in_json_the_reason_of_a_failed_start_is_an_event) {
  IDEM_NEED_PROGRAM("idem");
  TempDir dir;
  const std::string scope = "scope: {from: authorization}\nlisten: 127.0.0.1:0\nlog_format: json\n";
  const std::string upstream = "upstream: {url: \"http://127.0.0.1:9\"}\n";
  const auto file = dir.path() / "idem.yaml";
  const auto line_of = [&](const std::string& command, const std::string& text, int code) {
    std::ofstream(file) << text;
    Process process(
        {.program = built_program("idem"), .arguments = {command, "--config", file.string()}});
    EXPECT_EQ(process.exit_code(), code);
    const std::string output = process.output();
    const auto at = output.rfind('\n', output.size() - 2);
    const auto line = parse_json(output.substr(at == output.npos ? 0 : at + 1));
    EXPECT_TRUE(line) << output;
    return line.value_or(Json{});
  };
  const std::string store = "store: sqlite:/no/such/dir/idem.db\n";
  for (const std::string command : {"gateway", "worker"}) {
    const bool serves = command == "gateway";
    const Json failed =
        line_of(command, serves ? upstream + scope + store : "log_format: json\n" + store, 1);
    EXPECT_EQ(failed["event"].string, "start_failed");
    EXPECT_EQ(failed["level"].string, "error");
  }
  const Json refused = line_of("gateway", scope, 2);
  EXPECT_EQ(refused["event"].string, "settings_refused");
  EXPECT_NE(refused["reason"].string.find("there is no upstream"), std::string::npos);
}

TEST(ConfigCommands, check_print_and_schema_have_the_documented_exit_codes) {
  IDEM_NEED_PROGRAM("idem");
  TempDir dir;
  const auto run = [&](std::vector<std::string> arguments, int code) {
    arguments.insert(arguments.begin(), "config");
    Process process({.program = built_program("idem"), .arguments = arguments});
    EXPECT_EQ(process.exit_code(), code) << process.output();
    return process.output();
  };
  const auto file = (dir.path() / "idem.yaml").string();
  std::ofstream(file) << "upstream: {url: \"http://127.0.0.1:9\"}\nscope: {from: authorization}\n";
  EXPECT_EQ(run({"check", "--config", file}, 0), "ok\n");
  EXPECT_NE(run({"print", "--config", file, "--lease", "90s"}, 0).find("  lease: 90s\n"),
            std::string::npos);
  EXPECT_TRUE(run({"schema"}, 0).starts_with("{\"$schema\":"));
  EXPECT_NE(run({"check", "--config", file, "--lease", "9s"}, 2).find("--lease: the lease of 9s"),
            std::string::npos);
  run({"check", "--config", file, "--lease", "90s", "--lease", "91s"}, 2);
  run({}, 2);
}

}  // namespace
}  // namespace idem::test
