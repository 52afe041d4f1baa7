#include <sqlite3.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <set>

#include "core/bytes/percent.hpp"
#include "support/admin.hpp"
#include "support/async.hpp"
#include "support/back_off.hpp"
#include "support/encrypted.hpp"
#include "support/moved_clock.hpp"
#include "support/postgres.hpp"
#include "support/shared_store.hpp"

/// An operator finds a record by a value that it had: an order's number, the provider's id, a
/// trace.
namespace idem::test {
namespace {

constexpr std::string_view trace = "4bf92f3577b34da6a3ce929d0e0e4736";

Request order_of(std::string_view key, const std::string& body, std::string_view faults = {}) {
  return with(charge(key, faults, body), "traceparent",
              "00-" + std::string(trace) + "-00f067aa0ba902b7-01");
}

std::string encoded(std::string_view text) {
  return percent_encoded(text, [](char) { return false; });
}

class Searching : public testing::Test {
 protected:
  Json page(std::string_view value, std::string_view more = {}) {
    const std::string target = "/v1/keys?find=" + encoded(value) + std::string(more);
    const auto answer =
        send_once(gateway_->admin(),
                  {.method = "GET", .target = target, .fields = {{"Host", gateway_->admin()}}});
    EXPECT_EQ(answer.status, 200) << answer.raw;
    return parse_json(answer.body).value_or(Json{});
  }
  /// The same once it has so many records: values are written behind the answers.
  Json found(std::string_view value, std::size_t count = 1) {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
      Json all = page(value);
      if (all["keys"].items.size() == count) return all;
      if (std::chrono::steady_clock::now() > until) {
        ADD_FAILURE() << value << ": " << all["keys"].items.size() << " records";
        return all;
      }
      back_off();
    }
  }
  static std::set<std::string> found_by(const Json& record) {
    std::set<std::string> all;
    for (const auto& one : record["found_by"].items) all.insert(one.string);
    return all;
  }
  Response ask(const Request& request) { return send_once(gateway_->address(), request); }

  TempDir dir_;
  Provider provider_;
  std::unique_ptr<Gateway> gateway_;
};

using Kinds = std::set<std::string>;

class Search : public Searching, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    if (GetParam() != "sqlite") store_ = std::make_unique<SharedStoreUrl>(GetParam());
    start();
  }
  void start(std::vector<std::string> flags = {}, const std::string& program = "idem",
             std::vector<std::string> environment = {}) {
    const std::vector<std::string> searches{"--search-request", "/order_id",
                                            "--search-request", "/metadata/cart",
                                            "--search-answer",  "/id"};
    flags.insert(flags.end(), searches.begin(), searches.end());
    gateway_ = std::make_unique<Gateway>(
        GatewayOptions{.upstream = provider_.address(),
                       .store = dir_.path() / "idem.db",
                       .store_url = store_ ? store_->url() : std::string(),
                       .flags = std::move(flags),
                       .environment = std::move(environment),
                       .program = program});
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }

  std::unique_ptr<SharedStoreUrl> store_;
};

INSTANTIATE_TEST_SUITE_P(Stores, Search,
                         testing::Values("sqlite", "postgres", "mysql", "redis", "dynamodb",
                                         "hybrid"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Search, finds_a_completed_record_by_each_of_its_values) {
  const auto first = ask(order_of("k", R"({"amount":1,"order_id":"A/1 ä","metadata":{"cart":77}})",
                                  "header=Idem-Reference:ref-1"));
  ASSERT_EQ(first.status, 201) << first.raw;
  ask(charge("other", {}, R"({"amount":2,"order_id":"B"})"));
  const std::string id = parse_json(first.body).value_or(Json{})["id"].string;
  ASSERT_FALSE(id.empty());
  const Json by_order = found("A/1 ä");
  const std::string ref = by_order["keys"].items.at(0)["ref"].string;
  EXPECT_EQ(found_by(by_order["keys"].items.at(0)), Kinds{"request /order_id"});
  EXPECT_EQ(by_order["keys"].items.at(0)["state"].string, "completed");
  const std::pair<std::string, std::string> others[] = {
      {"77", "request /metadata/cart"},
      {id, "answer /id"},
      {"ref-1", "upstream_reference"},
      {std::string(trace), "trace_id"},
      {"4BF92F3577B34DA6A3CE929D0E0E4736", "trace_id"},
      {"00-" + std::string(trace) + "-00f067aa0ba902b7-01", "trace_id"}};
  for (const auto& [value, kind] : others) {
    const Json one = found(value);
    ASSERT_EQ(one["keys"].items.size(), 1U) << value;
    EXPECT_EQ(one["keys"].items[0]["ref"].string, ref) << value;
    EXPECT_TRUE(found_by(one["keys"].items[0]).contains(kind)) << value;
  }
  for (const auto* none : {"A", "a/1 ä", "A/1", "2", "201", "/order_id"}) {
    EXPECT_TRUE(page(none)["keys"].items.empty()) << none;
  }
}

TEST_P(Search, finds_a_first_request_that_ended_unknown) {
  EXPECT_EQ(ask(charge("k", "drop-after", R"({"amount":1,"order_id":4711})")).status, 502);
  const Json record = found("4711")["keys"].items.at(0);
  EXPECT_EQ(record["state"].string, "unknown");
  EXPECT_TRUE(page("4711", "&state=completed")["keys"].items.empty()) << "filters apply";
  EXPECT_EQ(page("4711", "&state=unknown&scope=acme")["keys"].items.size(), 1U);
  EXPECT_TRUE(page("4711", "&scope=other")["keys"].items.empty());
}

TEST_P(Search, finds_records_of_several_tenants_by_one_value) {
  const std::string body = R"({"amount":1,"order_id":"shared"})";
  ASSERT_EQ(ask(charge("k", {}, body)).status, 201);
  ASSERT_EQ(ask(with(without(charge("k", {}, body), "X-Tenant-Id"), "X-Tenant-Id", "other")).status,
            201);
  const Json both = found("shared", 2);
  std::set<std::string> scopes;
  for (const auto& record : both["keys"].items) scopes.insert(record["scope"].string);
  EXPECT_EQ(scopes, (std::set<std::string>{"acme", "other"}));
  EXPECT_EQ(page("shared", "&limit=1")["search"]["more"].boolean, true);
}

TEST_P(Search, a_retry_adds_nothing) {
  const Request first = order_of("k", R"({"amount":1,"order_id":"A"})");
  ASSERT_EQ(ask(first).status, 201);
  found("A");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(first).status, 201);
  EXPECT_EQ(provider_.effects("k"), 1);
  EXPECT_EQ(found_by(found("A")["keys"].items.at(0)), Kinds{"request /order_id"});
}

TEST_P(Search, says_what_it_read) {
  const auto until = std::chrono::steady_clock::now() + patience;
  Json nothing = page("never-seen");  // The settings are noted behind the start.
  while (!nothing["search"]["configured"].boolean && std::chrono::steady_clock::now() < until) {
    back_off();
    nothing = page("never-seen");
  }
  EXPECT_TRUE(nothing["keys"].items.empty());
  const Json& search = nothing["search"];
  EXPECT_TRUE(search["configured"].boolean);
  EXPECT_TRUE(search["since"].string.ends_with("Z"));
  ASSERT_EQ(search["requests"].items.size(), 2U);
  EXPECT_EQ(search["requests"].items[0].string, "/order_id");
  EXPECT_EQ(search["answers"].items.at(0).string, "/id");
  EXPECT_FALSE(search["earlier_settings"].boolean);
  EXPECT_FALSE(search["more"].boolean);
  EXPECT_EQ(search["unreadable"].integer, 0);
}

// Between the reserve and the answer: the provider has the request, and this process dies.
TEST_P(Search, finds_what_a_killed_gateway_left) {
  Connection client(gateway_->address());
  client.send(charge("k", "hold=h", R"({"amount":1,"order_id":"killed"})"));
  ASSERT_TRUE(provider_.wait_held("h", 1));
  const std::string ref = found("killed")["keys"].items.at(0)["ref"].string;
  gateway_->kill();
  provider_.release("h");
  gateway_->restart();
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  EXPECT_EQ(found("killed")["keys"].items.at(0)["ref"].string, ref);
}

class SearchOnce : public Searching {
 protected:
  void start(std::vector<std::string> flags, const std::string& program = "idem",
             std::vector<std::string> environment = {}) {
    gateway_ = std::make_unique<Gateway>(GatewayOptions{.upstream = provider_.address(),
                                                        .store = dir_.path() / "idem.db",
                                                        .flags = std::move(flags),
                                                        .environment = std::move(environment),
                                                        .program = program});
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  static std::vector<std::string> order_ids() { return {"--search-request", "/order_id"}; }
};

TEST_F(SearchOnce, without_the_setting_nothing_is_written) {
  start({});
  ASSERT_EQ(ask(order_of("k", R"({"amount":1,"order_id":"A"})")).status, 201);
  const Json nothing = page("A");
  EXPECT_TRUE(nothing["keys"].items.empty());
  EXPECT_FALSE(nothing["search"]["configured"].boolean);
  EXPECT_EQ(nothing["search"]["since"].kind, Json::Kind::null);
  EXPECT_EQ(nothing["search"]["days"].integer, 0);
  EXPECT_EQ(metric_at(gateway_->admin(), R"(idem_search_not_indexed_total{reason="store_failed"})"),
            -1);
}

// An older record is found as it was indexed, and the answer says that nothing is indexed now.
TEST_F(SearchOnce, what_was_indexed_is_found_when_the_setting_is_gone) {
  start(order_ids());
  ASSERT_EQ(ask(order_of("k", R"({"amount":1,"order_id":"A"})")).status, 201);
  found("A");
  EXPECT_EQ(gateway_->terminate(), 0);
  start({});
  const auto until = std::chrono::steady_clock::now() + patience;
  while (page("A")["search"]["configured"].boolean && std::chrono::steady_clock::now() < until) {
    back_off();
  }
  const Json later = page("A");
  EXPECT_EQ(later["keys"].items.size(), 1U);
  EXPECT_FALSE(later["search"]["configured"].boolean);
  EXPECT_TRUE(later["search"]["earlier_settings"].boolean);
}

TEST_F(SearchOnce, a_stop_writes_what_waits) {
  start(order_ids());
  for (int i = 0; i < 50; ++i) {
    ask(charge("k" + std::to_string(i), {},
               R"({"amount":1,"order_id":"A)" + std::to_string(i) + R"("})"));
  }
  EXPECT_EQ(gateway_->terminate(), 0);
  start(order_ids());
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(page("A" + std::to_string(i))["keys"].items.size(), 1U) << i;
  }
}

TEST_F(SearchOnce, finds_a_stored_request_before_and_after_it_runs) {
  std::vector<std::string> flags = order_ids();
  flags.insert(flags.end(), {"--mode", "async", "--search-answer", "/id"});
  start(flags);
  const auto accepted = ask(charge("k", "hold=h", R"({"amount":1,"order_id":"later"})"));
  ASSERT_EQ(accepted.status, 202) << accepted.raw;
  ASSERT_TRUE(provider_.wait_held("h", 1));
  const std::string ref = found("later")["keys"].items.at(0)["ref"].string;
  provider_.release("h");
  const Json ended = state_when_ended(gateway_->address(), accepted);
  EXPECT_EQ(ended["state"].string, "completed");
  EXPECT_EQ(found("ch_1")["keys"].items.at(0)["ref"].string, ref);
}

TEST_F(SearchOnce, an_order_is_found_by_the_answer_that_it_stored) {
  std::vector<std::string> flags = order_ids();
  flags.insert(flags.end(), {"--search-answer", "/id"});
  start(flags);
  EXPECT_EQ(ask(charge("k", "drop-after", R"({"amount":1,"order_id":"A"})")).status, 502);
  const Json record = found("A")["keys"].items.at(0);
  const std::string target = "/v1/keys/" + record["ref"].string + "/resolve";
  const std::string order = R"({"as":"completed","fence":)" +
                            std::to_string(record["fence"].integer) +
                            R"(,"evidence":"e","reason":"r","response":{"status":201,)"
                            R"("headers":[],"body_b64":"eyJpZCI6ImNoXzkifQ=="}})";  // ch_9
  const auto answer = send_once(gateway_->admin(), {.method = "POST",
                                                    .target = target,
                                                    .fields = {{"Host", gateway_->admin()},
                                                               {"Content-Type", "application/json"},
                                                               {"Idem-Operator", "grace"}},
                                                    .body = order});
  ASSERT_EQ(answer.status, 200) << answer.raw;
  EXPECT_EQ(found_by(found("ch_9")["keys"].items.at(0)), Kinds{"answer /id"});
}

// A reader of the store learns no value: neither of the names of the journals nor of their lines.
TEST_F(SearchOnce, the_store_has_no_value_in_clear) {
  start(order_ids());
  ASSERT_EQ(ask(order_of("k", R"({"amount":1,"order_id":"secret-order"})")).status, 201);
  found("secret-order");
  EXPECT_EQ(gateway_->terminate(), 0);
  const std::string content = store_content(dir_.path() / "idem.db");
  EXPECT_EQ(content.find("secret-order"), content.npos);
  EXPECT_NE(content.find("request /order_id"), content.npos) << "which place it was";
}

TEST_F(SearchOnce, lines_are_sealed_where_the_store_is_and_found_under_a_former_secret) {
  const auto with_secrets = [&](const std::vector<std::string>& names) {
    std::vector<std::string> flags = order_ids();
    flags.insert(flags.end(), {"--encryption-secret-file", secret_file(dir_.path(), "seals")});
    for (const auto& name : names) {
      flags.insert(flags.end(), {"--secret-file", secret_file(dir_.path(), name)});
    }
    return flags;
  };
  start(with_secrets({"first"}));
  ASSERT_EQ(ask(order_of("k", R"({"amount":1,"order_id":"A"})")).status, 201);
  const std::string ref = found("A")["keys"].items.at(0)["ref"].string;
  EXPECT_EQ(gateway_->terminate(), 0);
  const std::string content = store_content(dir_.path() / "idem.db");
  EXPECT_EQ(content.find("request /order_id"), content.npos);
  start(with_secrets({"second", "first"}));
  const Json rotated = found("A");
  EXPECT_EQ(rotated["keys"].items.at(0)["ref"].string, ref);
  EXPECT_EQ(rotated["search"]["unreadable"].integer, 0);
}

TEST_F(SearchOnce, a_reload_begins_and_changes_it) {
  const auto file = dir_.path() / "idem.yaml";
  const auto write = [&](std::string_view text) {
    std::ofstream(file, std::ios::trunc) << "# settings\n" << text;
  };
  const auto reload = [&](std::string_view event) {
    auto& process = gateway_->process();
    const auto before = process.output().size();
    process.signal(SIGHUP);
    return process.wait_for_line(std::string(event) + " ", patience, before).value_or("none");
  };
  write("");
  start({"--config", file.string()});
  ASSERT_EQ(ask(order_of("before", R"({"amount":1,"order_id":"before"})")).status, 201);
  write("search: { requests: [/order_id] }\n");
  reload("reloaded");
  ASSERT_EQ(ask(order_of("k", R"({"amount":1,"order_id":"A"})")).status, 201);
  found("A");
  EXPECT_TRUE(page("before")["keys"].items.empty()) << "nothing is indexed later";
  write("search: { requests: [order_id] }\n");
  EXPECT_NE(reload("reload_failed").find("is no JSON Pointer"), std::string::npos);
  write("search: { requests: [] }\n");
  reload("reloaded");
  ASSERT_EQ(ask(with(charge("t", {}, R"({"amount":1,"order_id":"T"})"), "traceparent",
                     "00-11111111111111111111111111111111-00f067aa0ba902b7-01"))
                .status,
            201);
  found("11111111111111111111111111111111");
  EXPECT_TRUE(page("T")["keys"].items.empty());
}

/// The first day that has a journal, from a backup: a gateway may have the store.
std::string first_day_of(const std::filesystem::path& folder, const std::string& copy) {
  const std::string from = "sqlite:" + (folder / "idem.db").string(), to = folder / copy;
  EXPECT_EQ(run_program(built_program("idem"), {"store", "backup", from, to}, {}).exit_code, 0);
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(to.c_str(), &db), SQLITE_OK);
  std::string first;
  const auto read = [](void* into, int, char** values, char**) {
    return static_cast<std::string*>(into)->assign(values[0] != nullptr ? values[0] : ""), 0;
  };
  const char* const sql = "SELECT min(name) FROM idem_journal WHERE name GLOB 'find/*'";
  EXPECT_EQ(sqlite3_exec(db, sql, read, &first, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
  return first.substr(0, first.rfind('/'));
}

TEST_F(SearchOnce, a_day_that_is_over_is_forgotten) {
  IDEM_NEED_PROGRAM("idem-crash");
  MovedClock clock;
  const auto first_day = [&](const std::string& copy) { return first_day_of(dir_.path(), copy); };
  std::vector<std::string> flags = order_ids();
  flags.insert(flags.end(), {"--retention", "1h", "--tombstone", "24h"});
  start(flags, "idem-crash", {clock.environment()});
  clock.move_also_under(dir_.path() / "idem.db");
  ASSERT_EQ(ask(order_of("k", R"({"amount":1,"order_id":"done"})")).status, 201);
  EXPECT_EQ(ask(charge("lost", "drop-after", R"({"amount":1,"order_id":"lost"})")).status, 502);
  found("done");
  found("lost");
  EXPECT_EQ(gateway_->terminate(), 0);
  const std::string day = first_day("before");
  EXPECT_NE(day, "");
  clock.pass(std::int64_t{3} * 24 * 3600);
  start(flags, "idem-crash", {clock.environment()});
  found("done", 0);
  EXPECT_EQ(found("lost")["keys"].items.at(0)["state"].string, "unknown");
  const auto until = std::chrono::steady_clock::now() + patience;
  for (int i = 0; first_day("copy" + std::to_string(i)) == day; ++i) {
    ASSERT_LT(std::chrono::steady_clock::now(), until);
  }
  // Its line moved to a later day, and the day that is over has nothing any more.
  EXPECT_EQ(page("lost")["search"]["days"].integer, 1);
  EXPECT_EQ(found("lost")["keys"].items.size(), 1U);
}

TEST_F(SearchOnce, the_command_line_shows_what_was_found_and_what_was_read) {
  start(order_ids());
  ASSERT_EQ(ask(order_of("k", R"({"amount":1,"order_id":"A 1"})")).status, 201);
  const std::string ref = found("A 1")["keys"].items.at(0)["ref"].string;
  const auto list = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"keys", "list"});
    return run_program(built_program("idem"), words,
                       {"IDEM_ADMIN_URL=http://" + gateway_->admin()});
  };
  const auto one = list({"--find", "A 1"});
  EXPECT_EQ(one.exit_code, 0) << one.output;
  EXPECT_NE(one.output.find(ref + " found by request /order_id"), std::string::npos) << one.output;
  EXPECT_NE(one.output.find("indexed since "), std::string::npos) << one.output;
  const auto none = list({"--find", "B"});
  EXPECT_EQ(none.exit_code, 0) << none.output;
  EXPECT_NE(none.output.find("no record was found by this value"), std::string::npos);
  EXPECT_NE(none.output.find("is found by key or ref"), std::string::npos) << none.output;
  const auto json = parse_json(list({"--find", "A 1", "--json"}).output).value_or(Json{});
  EXPECT_EQ(json["keys"].items.at(0)["ref"].string, ref);
  EXPECT_EQ(list({"--find", "A", "--cursor", std::string(32, 'a')}).exit_code, 2);
}

TEST_F(SearchOnce, a_search_needs_the_role_support) {
  const auto token = [&](const std::string& role) {
    const auto made =
        run_program(built_program("idem"), {"admin", "token", role, "--role", role, "--tokens-file",
                                            (dir_.path() / "tokens").string(), "--json"});
    return parse_json(made.output).value_or(Json{})["token"].string;
  };
  const std::string viewer = token("viewer");
  const std::string support = token("support");
  std::vector<std::string> flags = order_ids();
  flags.insert(flags.end(), {"--admin-tokens", (dir_.path() / "tokens").string()});
  start(flags);
  const auto search_as = [&](const std::string& who, const std::string& query) {
    return send_once(gateway_->admin(),
                     {.method = "GET",
                      .target = "/v1/keys?" + query,
                      .fields = {{"Host", gateway_->admin()}, {"Authorization", "Bearer " + who}}});
  };
  EXPECT_EQ(search_as(viewer, "find=A").status, 403);
  EXPECT_EQ(search_as(support, "find=A").status, 200);
  for (const auto& wrong :
       {std::string("find="), std::string("find=A&find=B"), "find=" + std::string(257, 'x'),
        "find=A&cursor=" + std::string(32, 'a'), std::string("find=A&key=k&scope=s&operation=o"),
        std::string("find=%00")}) {
    const auto refused = search_as(support, wrong);
    EXPECT_EQ(refused.status, 400) << wrong;
    EXPECT_EQ(refused.body.find("xxxx"), refused.body.npos) << "never a value";
  }
}

// Journals are tables of their own: clients must not suffer from them.
TEST_F(SearchOnce, a_store_that_refuses_journals_costs_no_answer) {
  SharedStoreUrl store("postgres");
  gateway_ = std::make_unique<Gateway>(GatewayOptions{
      .upstream = provider_.address(), .store_url = store.url(), .flags = order_ids()});
  ASSERT_TRUE(gateway_->running());
  ASSERT_EQ(ask(order_of("before", R"({"amount":1,"order_id":"before"})")).status, 201);
  found("before");
  Psql(store.database()).run("ALTER TABLE idem.journal RENAME TO gone");
  for (int i = 0; i < 20; ++i) {
    const std::string key = "k" + std::to_string(i);
    EXPECT_EQ(ask(order_of(key, R"({"amount":1,"order_id":"A"})")).status, 201);
    EXPECT_EQ(provider_.effects(key), 1);
  }
  Psql(store.database()).run("ALTER TABLE idem.gone RENAME TO journal");
  ASSERT_EQ(ask(order_of("after", R"({"amount":1,"order_id":"after"})")).status, 201);
  found("after");
}

/// Killed at each point of a request: it recovers as without a search.
class SearchKilled : public SearchOnce, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Points, SearchKilled,
                         testing::Values("reserve_after_commit", "dispatch_before_first_byte",
                                         "dispatch_sent", "settle_before_commit",
                                         "settle_after_commit", "answer_before_first_byte"),
                         [](const auto& point) { return std::string(point.param); });

TEST_P(SearchKilled, the_effect_is_one_and_a_search_shows_no_other_record) {
  IDEM_NEED_PROGRAM("idem-crash");
  std::vector<std::string> flags = order_ids();
  flags.insert(flags.end(), {"--search-answer", "/id"});
  start(flags, "idem-crash", {"IDEM_CRASH_AT=" + std::string(GetParam())});
  const Request request = order_of("k", R"({"amount":1,"order_id":"A"})");
  ask(request);
  gateway_->restart();
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  const auto again = ask(request);
  EXPECT_TRUE(again.status == 201 || again.status == 409) << again.raw;
  EXPECT_LE(provider_.effects("k"), 1);
  const auto listed =
      send_once(gateway_->admin(),
                {.method = "GET", .target = "/v1/keys", .fields = {{"Host", gateway_->admin()}}});
  const Json all = parse_json(listed.body).value_or(Json{});
  ASSERT_EQ(all["keys"].items.size(), 1U);
  const Json some = page("A");
  EXPECT_LE(some["keys"].items.size(), 1U);
  for (const auto& record : some["keys"].items) {
    EXPECT_EQ(record["ref"].string, all["keys"].items[0]["ref"].string);
  }
}

}  // namespace
}  // namespace idem::test
