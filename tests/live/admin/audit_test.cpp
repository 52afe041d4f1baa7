#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "support/admin.hpp"
#include "support/admin_page.hpp"
#include "support/back_off.hpp"
#include "support/encrypted.hpp"
#include "support/postgres.hpp"

/// What operators decide leaves lines that nobody can change unseen.
namespace idem::test {
namespace {

constexpr const char* nobodys_ref = "00112233445566778899aabbccddeeff";

bool is_null(const Json& value) { return value.kind == Json::Kind::null; }

/// A gateway whose tokens can be made and revoked, with a secret of its own.
class Audit : public Operated {
 protected:
  std::vector<std::string> flags() const override {
    return {"--admin-token-file", file("operator-token"), "--secret-file", secret_file()};
  }
  void SetUp() override {
    std::ofstream(secret_file()) << "of-the-canary-secret-0123456789abcdefghijklmnopqrstuv\n";
    std::filesystem::permissions(secret_file(), std::filesystem::perms::owner_read);
    Operated::SetUp();
    await_lines("config.start", 1);
  }
  std::string file(const std::string& name) const { return (dir_.path() / name).string(); }
  std::string secret_file() const { return file("secret"); }

  std::vector<Json> lines(const std::string& filter = {}) {
    const Json page = read("/v1/audit?limit=1000" + filter);
    EXPECT_TRUE(is_null(page["next"])) << "one page has them all";
    return page["audit"].items;
  }
  /// Settings are noted in the background.
  std::vector<Json> await_lines(const std::string& what, std::size_t count) {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
      auto found = lines("&what=" + what);
      if (found.size() >= count || std::chrono::steady_clock::now() > until) {
        EXPECT_EQ(found.size(), count) << what;
        return found;
      }
      back_off();
    }
  }
  Json verdict(const std::string& query = {}) { return read("/v1/audit/verify" + query); }
  void expect_whole() {
    const Json found = verdict();
    EXPECT_TRUE(is_null(found["first_bad"])) << found["why"].string;
  }
  Ran idem(std::vector<std::string> arguments) {
    arguments.push_back("--admin-url");
    arguments.push_back("http://" + gateway_->admin());
    return run_program(built_program("idem"), std::move(arguments),
                       {"IDEM_ADMIN_TOKEN_FILE=" + file("operator-token")});
  }
  Response resolve(const std::string& ref, const std::string& fence = "1") {
    return post("/v1/keys/" + ref + "/resolve",
                R"({"as":"failed_retryable","fence":)" + fence +
                    R"(,"evidence":"none","reason":"ticket 4711"})");
  }
};

/// Of each deciding operation of the page: a body with which it decides.
const std::map<std::string, std::string> deciding_bodies{
    {"/v1/keys/{ref}/resolve",
     R"({"as":"failed_retryable","fence":1,"evidence":"none","reason":"ticket 4711"})"},
    {"/v1/keys/{ref}/release", R"({"fence":1,"reason":"ticket 4711"})"},
    {"/v1/outbox/{id}/retry", "{}"},
    {"/v1/dlq/redrive", R"({"all":true,"reason":"ticket 4711"})"},
    {"/v1/dlq/discard", R"({"all":true,"reason":"ticket 4711"})"},
    {"/v1/settings/reload", R"({"reason":"ticket 4711"})"},
    {"/v1/tokens", R"({"name":"bob","role":"viewer"})"},
    {"/v1/tokens/{name}/revoke", R"({"reason":"ticket 4711"})"},
    {"/v1/store/rekey", "{}"},  // Refused: there is no secret.
    {"/v1/store/shred", R"({"scope":"tenant-1","reason":"ticket 4711"})"},  // Likewise.
};

TEST_F(Audit, S19_every_deciding_endpoint_leaves_an_intent_and_an_outcome) {
  // These decide about a job or an order that exists; jobs_test.cpp and approvals_test.cpp look at
  // their lines.
  const std::set<std::string> elsewhere{"/v1/jobs", "/v1/jobs/{id}/cancel",
                                        "/v1/approvals/{id}/approve", "/v1/approvals/{id}/reject"};
  int decisions = 0;
  for (const AdminOperation& one : admin_operations()) {
    if (one.method != "POST" || one.role != "operator" || elsewhere.contains(one.path)) continue;
    const auto body = deciding_bodies.find(one.path);
    ASSERT_NE(body, deciding_bodies.end()) << one.path << ": give it a body with which it decides";
    const bool is_message = one.path.starts_with("/v1/outbox") || one.path.starts_with("/v1/dlq");
    if (is_message && !live_store_has_outbox()) continue;
    std::string path = one.path;
    for (const auto& [braced, value] :
         {std::pair("{ref}", nobodys_ref), std::pair("{id}", nobodys_ref),
          std::pair("{name}", "bob")}) {
      const auto start = path.find(braced);
      if (start != path.npos) path.replace(start, std::string(braced).size(), value);
    }
    const auto before = lines();
    const auto answer = post(path, body->second);
    EXPECT_TRUE(answer.status == 200 || answer.status == 404 || answer.status == 409) << answer.raw;
    const auto after = lines();
    ASSERT_EQ(after.size(), before.size() + 2) << one.path << ": " << answer.raw;
    const Json& intent = after[after.size() - 2];
    const Json& outcome = after.back();
    EXPECT_TRUE(is_null(intent["of"])) << one.path;
    EXPECT_EQ(intent["after"].string, "") << one.path;
    EXPECT_EQ(outcome["of"].integer, intent["seq"].integer) << one.path;
    EXPECT_NE(outcome["after"].string, "") << one.path;
    for (const Json* const line : {&intent, &outcome}) {
      EXPECT_EQ((*line)["who"].string, "grace") << one.path;
      EXPECT_EQ((*line)["role"].string, "operator") << one.path;
      EXPECT_EQ((*line)["login"].string, "operator_token") << one.path;
      EXPECT_EQ((*line)["peer"].string, "127.0.0.1") << one.path;
    }
    // The log is an anchor outside of the store.
    EXPECT_TRUE(gateway_->process().wait_for_line("hash=" + outcome["hash"].string)) << one.path;
    ++decisions;
  }
  EXPECT_GE(decisions, live_store_has_outbox() ? 9 : 6);
  expect_whole();
}

TEST_F(Audit, S19_a_decision_about_a_record_says_what_was_and_what_became_of_it) {
  ask(charge("k", "drop-after"));
  const Json record = only("unknown");
  const std::string ref = record["ref"].string;
  const auto refused = resolve(ref, "99");
  EXPECT_EQ(refused.status, 409) << refused.raw;
  const auto done = post("/v1/keys/" + ref + "/resolve",
                         fmt::format(R"({{"as":"completed","fence":{},"evidence":"charge ch_1",)"
                                     R"("reason":"ticket 4711","response":{{"status":201}}}})",
                                     record["fence"].integer));
  ASSERT_EQ(done.status, 200) << done.raw;
  const auto all = lines("&ref=" + ref);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0]["what"].string, "keys.resolve");
  EXPECT_EQ(all[0]["reason"].string, "ticket 4711");
  EXPECT_TRUE(all[0]["before"].string.starts_with("unknown fence=")) << all[0]["before"].string;
  EXPECT_TRUE(all[1]["after"].string.starts_with("refused: wrong_fence")) << all[1]["after"].string;
  EXPECT_EQ(all[3]["after"].string, "completed");
  EXPECT_EQ(lines("&who=grace").size(), 4U);
  EXPECT_EQ(lines("&who=mallory").size(), 0U);
  EXPECT_EQ(read("/v1/audit?limit=1&ref=" + ref)["audit"].items.size(), 1U);
  expect_whole();
}

TEST_F(Audit, S19_what_was_no_decision_leaves_no_line) {
  const auto before = lines().size();
  EXPECT_EQ(post("/v1/keys/" + std::string(nobodys_ref) + "/resolve", "{}").status, 400);
  EXPECT_EQ(post("/v1/tokens", R"({"name":"bob"})").status, 400);
  get("/v1/keys");
  if (live_store_has_outbox()) {
    EXPECT_EQ(post("/v1/dlq/discard", R"({"all":true,"dry_run":true,"reason":"x"})").status, 200);
  }
  EXPECT_EQ(lines().size(), before);
}

TEST_F(Audit, S19_a_restart_goes_on_with_the_chain_and_notes_settings_once) {
  EXPECT_EQ(resolve(nobodys_ref).status, 404);
  const auto before = lines();
  gateway_->restart();
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  EXPECT_EQ(resolve(nobodys_ref).status, 404);
  const auto after = lines();
  ASSERT_EQ(after.size(), before.size() + 2) << "the settings are those of before";
  EXPECT_EQ(after.back()["seq"].integer, static_cast<std::int64_t>(after.size()));
  EXPECT_EQ(lines("&what=config.start").size(), 1U);
  expect_whole();
}

TEST_F(Audit, S19_secrets_are_in_no_line) {
  post("/v1/tokens", R"({"name":"bob","role":"viewer"})");
  std::ifstream token(file("operator-token"));
  std::string own;
  std::getline(token, own);
  const std::string all = get("/v1/audit/lines?limit=1000").body + get("/v1/audit?limit=1000").body;
  EXPECT_NE(all.find("config.start"), std::string::npos);
  EXPECT_EQ(all.find("of-the-canary"), std::string::npos);
  EXPECT_EQ(all.find(own), std::string::npos);
  EXPECT_EQ(all.find("idem_0"), std::string::npos);
}

TEST_F(Audit, S19_the_commands_list_export_and_verify) {
  EXPECT_EQ(resolve(nobodys_ref).status, 404);
  const auto listed = idem({"audit", "list", "--who", "grace"});
  EXPECT_EQ(listed.exit_code, 0) << listed.output;
  EXPECT_NE(listed.output.find("keys.resolve"), std::string::npos) << listed.output;
  const auto whole = idem({"audit", "verify"});
  EXPECT_EQ(whole.exit_code, 0) << whole.output;
  const Json last = verdict()["last"];
  const std::string anchor = fmt::format("{}:{}", last["seq"].integer, last["hash"].string);
  EXPECT_NE(whole.output.find(anchor), std::string::npos) << whole.output;
  EXPECT_EQ(idem({"audit", "verify", "--expect", anchor}).exit_code, 0);
  const std::string later = fmt::format("{}:{}", last["seq"].integer + 1, last["hash"].string);
  const auto missing = idem({"audit", "verify", "--expect", later});
  EXPECT_EQ(missing.exit_code, 5) << missing.output;
  EXPECT_NE(missing.output.find(std::to_string(last["seq"].integer + 1)), std::string::npos);
  EXPECT_EQ(idem({"audit", "verify", "--expect", "x"}).exit_code, 2);

  const auto exported = idem({"audit", "export", file("audit.jsonl")});
  ASSERT_EQ(exported.exit_code, 0) << exported.output;
  EXPECT_EQ(idem({"audit", "export", file("audit.jsonl")}).exit_code, 5) << "it overwrites nothing";
  const auto offline = [&](const std::string& from, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"audit", "verify",        "--file",
                                       from,    "--secret-file", secret_file()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(built_program("idem"), std::move(arguments));
  };
  const auto good = offline(file("audit.jsonl"), {"--expect", anchor});
  EXPECT_EQ(good.exit_code, 0) << good.output;
  const std::string other = test::secret_file(dir_.path(), "other");
  const auto with_both =
      run_program(built_program("idem"), {"audit", "verify", "--file", file("audit.jsonl"),
                                          "--secret-file", other, "--secret-file", secret_file()});
  EXPECT_EQ(with_both.exit_code, 0) << with_both.output;
  std::ifstream in(file("audit.jsonl"));
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto at = text.find("ticket 4711");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 11, "ticket 4712");
  std::ofstream(file("changed.jsonl")) << text;
  const auto bad = offline(file("changed.jsonl"));
  EXPECT_EQ(bad.exit_code, 5) << bad.output;
  EXPECT_NE(bad.output.find("the first bad line is 2"), std::string::npos) << bad.output;
}

/// With a file of settings that is read again.
class AuditSettings : public Audit {
 protected:
  std::vector<std::string> flags() const override {
    auto all = Audit::flags();
    all.insert(all.end(), {"--config", file("idem.yaml")});
    return all;
  }
  void SetUp() override {
    write("conflict");
    Audit::SetUp();
  }
  void write(const std::string& mode) const {
    std::ofstream(file("idem.yaml")) << "routes:\n  - name: create-charge\n    match: { methods: "
                                        "[POST], path: /charges }\n    mode: "
                                     << mode << "\n  - match: { path: \"/{rest...}\" }\n";
  }
};

TEST_F(AuditSettings, S19_a_reload_notes_the_route_that_changed) {
  write("wait");
  gateway_->process().signal(SIGHUP);
  const auto changed = await_lines("config.reload", 1);
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_TRUE(changed[0]["after"].string.starts_with("routes.create-charge: "))
      << changed[0]["after"].string;
  EXPECT_NE(changed[0]["after"].string.find("mode=wait"), std::string::npos);
  EXPECT_NE(changed[0]["before"].string.find("mode=conflict"), std::string::npos);
  EXPECT_EQ(std::ranges::count(changed[0]["after"].string, '\n'), 1) << "nothing else did";
  EXPECT_EQ(changed[0]["who"].string, "gateway");
  gateway_->process().signal(SIGHUP);
  EXPECT_TRUE(gateway_->process().wait_for_line("reloaded"));
  gateway_->restart();
  resolve(nobodys_ref);
  EXPECT_EQ(lines("&what=config.reload").size(), 1U);
  EXPECT_EQ(lines("&what=config.start").size(), 1U);
  expect_whole();
}

/// Killed at a point of the first decision.
class AuditCrash : public Audit {
 protected:
  GatewayOptions crashing() const {
    auto made = options(provider_->address());
    made.program = "idem-crash";
    return made;
  }
  std::string unknown_record() {
    ask(charge("k", "drop-after"));
    return only("unknown")["ref"].string;
  }
};

TEST_F(AuditCrash, S19_a_kill_behind_the_intent_leaves_it_alone_and_the_record_as_it_was) {
  IDEM_NEED_PROGRAM("idem-crash");
  gateway_->terminate();
  gateway_ = std::make_unique<Gateway>(crashing());
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  const std::string ref = unknown_record();
  const std::string fence = std::to_string(only("unknown")["fence"].integer);
  for (const auto& [point, state] : {std::pair("resolve_before_commit", "unknown"),
                                     std::pair("resolve_after_commit", "completed")}) {
    gateway_->restart({"IDEM_CRASH_AT=" + std::string(point)});
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
    post("/v1/keys/" + ref + "/resolve",
         R"({"as":"completed","evidence":"e","reason":"r","response":{"status":201},"fence":)" +
             fence + "}");
    EXPECT_EQ(gateway_->process().exit_code(), 128 + SIGKILL) << point;
    gateway_->restart();
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
    EXPECT_EQ(read("/v1/keys/" + ref)["state"].string, state) << point;
    const auto all = lines("&ref=" + ref);
    ASSERT_FALSE(all.empty()) << point;
    EXPECT_TRUE(is_null(all.back()["of"])) << point << ": nobody knows the outcome";
    expect_whole();
  }
  EXPECT_EQ(lines("&ref=" + ref).size(), 2U);
}

/// PostgreSQL below, which others change and stop.
class AuditOnPostgres : public Operated {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    provider_ = std::make_unique<Provider>();
    gateway_ = std::make_unique<Gateway>(with_store());
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  GatewayOptions with_store() const {
    return {.upstream = provider_->address(),
            .store_url = server_.uri(),
            .flags = {"--admin-token-file", (dir_.path() / "operator-token").string()}};
  }
  Response decide(const std::string& admin, const std::string& who) const {
    Request request = nameless_order("/v1/keys/" + std::string(nobodys_ref) + "/release",
                                     R"({"fence":1,"reason":"r"})");
    request.fields[0].value = admin;
    request.fields.push_back({"Idem-Operator", who});
    return send_once(admin, request);
  }

  PostgresServer server_;
};

TEST_F(AuditOnPostgres, S19_without_its_line_no_decision_is_made) {
  EXPECT_EQ(decide(gateway_->admin(), "ada").status, 404);
  Psql owner(server_.uri());
  owner.run("ALTER TABLE idem.journal RENAME TO away");
  const auto refused = decide(gateway_->admin(), "ada");
  EXPECT_TRUE(is_problem(refused, 503, "store_unavailable")) << refused.raw;
  EXPECT_NE(refused.body.find("Nothing was done"), std::string::npos) << refused.raw;
  EXPECT_EQ(owner.run("SELECT count(*) FROM idem.evidence"), "1") << "that of the first decision";
  owner.run("ALTER TABLE idem.away RENAME TO journal");
  EXPECT_EQ(decide(gateway_->admin(), "ada").status, 404);
  server_.stop();
  EXPECT_EQ(decide(gateway_->admin(), "ada").status, 503);
}

TEST_F(AuditOnPostgres, S19_two_gateways_that_decide_at_once_keep_one_chain) {
  constexpr int each = 25;
  Gateway second(with_store());
  ASSERT_TRUE(second.running()) << second.process().output();
  const auto decide_all = [&](const std::string& admin, const std::string& who) {
    for (int n = 0; n < each; ++n) EXPECT_EQ(decide(admin, who).status, 404) << n;
  };
  std::thread theirs([&] { decide_all(second.admin(), "bob"); });
  decide_all(gateway_->admin(), "ada");
  theirs.join();
  EXPECT_EQ(read("/v1/audit?limit=1000&who=ada")["audit"].items.size(), 2U * each);
  EXPECT_EQ(read("/v1/audit?limit=1000&who=bob")["audit"].items.size(), 2U * each);
  const Json found = read("/v1/audit/verify");
  EXPECT_TRUE(is_null(found["first_bad"])) << found["why"].string;
  EXPECT_GE(found["lines"].integer, 4 * each + 1);
}

/// Statements of someone who may write to the table, and the number of the line that then is bad.
struct Tampering {
  const char* sql;
  std::int64_t first_bad;
};
constexpr const char* copy_of_line =
    "INSERT INTO idem.journal SELECT name, 8, at, line, total, checksum FROM idem.journal WHERE "
    "seq = 7";

TEST_F(AuditOnPostgres, S19_lines_that_were_changed_removed_moved_or_inserted_are_found) {
  for (int n = 0; n < 3; ++n) EXPECT_EQ(decide(gateway_->admin(), "ada").status, 404);
  const Json whole = read("/v1/audit/verify");
  ASSERT_TRUE(is_null(whole["first_bad"])) << whole["why"].string;
  const std::int64_t last = whole["last"]["seq"].integer;
  ASSERT_EQ(last, 7) << "one of the settings and six of decisions";
  const std::string anchor = fmt::format("?expect={}:{}", last, whole["last"]["hash"].string);
  Psql owner(server_.uri());
  owner.run("CREATE TABLE kept AS SELECT * FROM idem.journal");
  const Tampering all[] = {
      {"UPDATE idem.journal SET line = convert_to(replace(convert_from(line, 'UTF8'), 'ada', "
       "'eve'),"
       " 'UTF8') WHERE seq = 4",
       4},
      {"UPDATE idem.journal SET line = (SELECT line FROM kept WHERE seq = 2) WHERE seq = 4", 4},
      {"DELETE FROM idem.journal WHERE seq = 1", 1},
      {"DELETE FROM idem.journal WHERE seq = 4", 4},
      {"DELETE FROM idem.journal WHERE seq = 7", 7},
      {"DELETE FROM idem.journal", 1},
      {"DELETE FROM idem.journal WHERE seq = 2; UPDATE idem.journal SET seq = seq - 1 WHERE seq > "
       "2",
       2},
      {"UPDATE idem.journal SET seq = seq + 100 WHERE seq IN (5, 6);"
       " UPDATE idem.journal SET seq = 111 - seq WHERE seq > 100",
       5},
      {copy_of_line, 8},
  };
  for (const Tampering& one : all) {
    owner.run("SET session_replication_role = replica; BEGIN");
    owner.run(one.sql);
    owner.run("COMMIT");
    const Json found = read("/v1/audit/verify" + anchor);
    EXPECT_EQ(found["first_bad"].integer, one.first_bad) << one.sql << ": " << found["why"].string;
    owner.run("DELETE FROM idem.journal; INSERT INTO idem.journal SELECT * FROM kept");
    EXPECT_TRUE(is_null(read("/v1/audit/verify" + anchor)["first_bad"]));
  }
}

}  // namespace
}  // namespace idem::test
