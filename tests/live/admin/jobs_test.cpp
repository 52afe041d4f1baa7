#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "support/admin.hpp"
#include "support/back_off.hpp"
#include "support/changed_by_hand.hpp"
#include "support/jobs.hpp"
#include "support/moved_clock.hpp"

/// Orders about all records that match.
namespace idem::test {
namespace {

class Jobs : public Operated {
 protected:
  // Short, so that the moment from which "nothing there" counts comes within a job.
  std::vector<std::string> flags() const override {
    return {"--lease", "2s", "--upstream-timeout", "1s", "--evidence-grace", "0s"};
  }

  std::string begin(std::string body) {
    const auto begun = post("/v1/jobs", std::move(body));
    EXPECT_EQ(begun.status, 202) << begun.raw;
    const Json job = parse_json(begun.body).value_or(Json{});
    EXPECT_EQ(begun.get("Location"), "/v1/jobs/" + job["job"].string);
    return job["job"].string;
  }
  Json wait(const std::string& id, const std::function<bool(const Json&)>& is_enough = is_over) {
    return wait_for_job([&] { return gateway_->admin(); }, id, is_enough);
  }
  std::int64_t preview(const std::string& search) {
    const auto answer = post("/v1/jobs/preview", search);
    EXPECT_EQ(answer.status, 200) << answer.raw;
    return parse_json(answer.body).value_or(Json{})["count"].integer;
  }
  std::size_t count_of(const std::string& state) {
    return read("/v1/keys?limit=1000&state=" + state)["keys"].items.size();
  }
  Ran idem(std::vector<std::string> words) {
    return run_program(built_program("idem"), std::move(words),
                       {"IDEM_ADMIN_URL=http://" + gateway_->admin(), "IDEM_OPERATOR=grace"});
  }
};

constexpr const char* unknown_ones = R"({"what":"keys.resolve","match":{"state":"unknown"}})";

TEST_F(Jobs, V29_all_that_match_are_previewed_and_decided_with_a_result_for_each) {
  make_unknown(gateway_->address(), "k", 25);
  ASSERT_EQ(ask(charge("done")).status, 201);
  const auto answer = post("/v1/jobs/preview", unknown_ones);
  const Json seen = parse_json(answer.body).value_or(Json{});
  EXPECT_EQ(seen["count"].integer, 25);
  EXPECT_TRUE(seen["is_exact"].boolean);
  EXPECT_EQ(seen["examples"].items.size(), 10U);
  const std::string id = begin(completing_all(25, 500));
  const Json job = wait(id);
  EXPECT_EQ(job["state"].string, "ended");
  EXPECT_EQ(job["done"].integer, 25);
  EXPECT_EQ(job["who"].string, "grace");
  EXPECT_EQ(count_of("unknown"), 0U);
  const auto results = results_of(gateway_->admin(), id);
  EXPECT_EQ(results.size(), 25U);
  for (const auto& [ref, result] : results) {
    EXPECT_EQ(result.verdict, "done");
    EXPECT_EQ(evidence_of_job(gateway_->admin(), ref, id).applied, 1);
  }
  const auto replay = ask(charge("k-7"));
  EXPECT_EQ(replay.status, 201);
  EXPECT_EQ(replay.body, "found");
  EXPECT_EQ(effects("k-7"), 1);
  const Json jobs = read("/v1/jobs");
  ASSERT_EQ(jobs["jobs"].items.size(), 1U);
  EXPECT_EQ(jobs["jobs"].items[0]["state"].string, "ended");
  EXPECT_EQ(jobs["jobs"].items[0]["done"].integer, 25);
}

TEST_F(Jobs, V29_another_number_than_the_expected_one_begins_nothing) {
  make_unknown(gateway_->address(), "k", 3);
  const auto refused = post("/v1/jobs", completing_all(2, 500));
  EXPECT_TRUE(is_problem(refused, 409, "state_refused")) << refused.raw;
  EXPECT_EQ(parse_json(refused.body).value_or(Json{})["count"].integer, 3);
  EXPECT_TRUE(read("/v1/jobs")["jobs"].items.empty());
  EXPECT_EQ(count_of("unknown"), 3U);
}

TEST_F(Jobs, V29_a_cancelled_job_keeps_what_it_has_done_and_decides_no_more) {
  constexpr int count = 100;
  make_unknown(gateway_->address(), "k", count);
  const std::string id = begin(completing_all(count, 20));
  wait(id, [](const Json& job) { return job["done"].integer >= 16; });
  const auto cancelled = post("/v1/jobs/" + id + "/cancel", R"({"reason":"the wrong list"})");
  ASSERT_EQ(cancelled.status, 200) << cancelled.raw;
  const Json job = wait(id);
  EXPECT_EQ(job["state"].string, "cancelled");
  EXPECT_EQ(job["cancelled_by"].string, "grace");
  const auto done = job["done"].integer;
  EXPECT_LT(done, count);
  EXPECT_EQ(job["left"].integer, count - done);
  EXPECT_EQ(count_of("completed"), static_cast<std::size_t>(done));
  EXPECT_EQ(count_of("unknown"), static_cast<std::size_t>(count - done));
  EXPECT_EQ(results_of(gateway_->admin(), id).size(), static_cast<std::size_t>(done));
  EXPECT_TRUE(
      is_problem(post("/v1/jobs/" + id + "/cancel", R"({"reason":"r"})"), 409, "state_refused"));
  const Json audit = read("/v1/audit?ref=" + id);
  std::vector<std::string> seen;
  for (const Json& line : audit["audit"].items) {
    if (line["what"].string == "jobs.cancel") seen.push_back(line["after"].string);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"", "cancelled"}));
}

TEST_F(Jobs, S03_a_record_that_ran_again_meanwhile_is_refused) {
  constexpr int count = 6;
  make_unknown(gateway_->address(), "k", count);
  // The job decides in the order of the refs, so the last one has some seconds to run again.
  std::pair<std::string, std::string> last;
  std::int64_t fence = 0;
  for (int i = 0; i < count; ++i) {
    const auto key = fmt::format("k-{}", i);
    const Json found = read("/v1/keys?scope=acme&operation=POST+/charges&key=" + key)["keys"];
    ASSERT_EQ(found.items.size(), 1U);
    if (found.items[0]["ref"].string < last.first) continue;
    last = {found.items[0]["ref"].string, key};
    fence = found.items[0]["fence"].integer;
  }
  ask(charge("probe", "drop-before"));
  const Json probe = read("/v1/keys?scope=acme&operation=POST+/charges&key=probe")["keys"];
  const auto nothing_there = [](std::int64_t of) {
    return fmt::format(R"({{"as":"failed_retryable","fence":{},"evidence":"e","reason":"r"}})", of);
  };
  const Json& one = probe.items.at(0);
  const auto until = std::chrono::steady_clock::now() + patience;
  Response answer;
  do {
    back_off();
    answer =
        post("/v1/keys/" + one["ref"].string + "/resolve", nothing_there(one["fence"].integer));
  } while (answer.status == 409 && std::chrono::steady_clock::now() < until);
  ASSERT_EQ(answer.status, 200) << "the leases of all are over: " << answer.raw;

  const std::string id = begin(completing_all(count, 1));
  const std::string path = "/v1/keys/" + last.first;
  ASSERT_EQ(post(path + "/resolve", nothing_there(fence)).status, 200);
  ASSERT_EQ(ask(charge(last.second, "drop-after")).status, 502);
  ASSERT_GT(read(path)["fence"].integer, fence);
  const Json job = wait(id);
  EXPECT_EQ(job["done"].integer, count - 1);
  EXPECT_EQ(job["refused"].integer, 1);
  const SeenResult result = results_of(gateway_->admin(), id)[last.first];
  EXPECT_EQ(result.verdict, "wrong_fence");
  EXPECT_EQ(result.state, "unknown");
  EXPECT_EQ(result.fence, fence);
  EXPECT_EQ(read(path)["state"].string, "unknown");
}

TEST_F(Jobs, V29_the_audit_has_the_beginning_and_the_end_of_a_job) {
  make_unknown(gateway_->address(), "k", 4);
  const std::string id = begin(completing_all(4, 500));
  wait(id);
  std::vector<std::string> seen;
  const Json audit = read("/v1/audit");
  for (const Json& line : audit["audit"].items) {
    if (line["ref"].string != id) continue;
    seen.push_back(line["what"].string + " " + line["after"].string.substr(0, 23));
    EXPECT_EQ(line["who"].string, "grace");
    EXPECT_EQ(line["reason"].string, "ticket 4711");
  }
  const std::vector<std::string> expected{"jobs.begin ", "jobs.begin begun",
                                          "jobs.end ended: done=4 refused=0"};
  EXPECT_EQ(seen, expected);
}

TEST_F(Jobs, name_the_mistake_in_an_order) {
  const std::pair<std::string, const char*> cases[] = {
      {R"({"what":"keys.drop","match":{}})", "/what: "},
      {R"({"what":"keys.resolve"})", "/match: "},
      {R"({"what":"keys.resolve","match":{}})", "/match/state: "},
      {R"({"what":"keys.resolve","match":{"state":"odd"}})", "/match: state: "},
      {R"({"what":"keys.resolve","match":{"state":7}})", "/match/state: "},
      {R"({"what":"keys.resolve","match":{"key":"k"}})", "/match: "},
      {R"({"what":"keys.release","match":{"state":"unknown"}})", "/match/state: "},
      {R"({"what":"dlq.discard","match":{"destination":""}})", "/match/destination: "},
      {R"({"what":"keys.resolve","match":{"state":"unknown"},"order":{}})", "body: "}};
  for (const auto& [body, where] : cases) {
    const auto answer = post("/v1/jobs/preview", body);
    EXPECT_TRUE(is_problem(answer, 400, "invalid_request")) << body;
    EXPECT_TRUE(json_text(answer.body, "detail").starts_with(where)) << answer.body;
  }
  const auto job = [](std::string_view order, std::string_view rest) {
    return fmt::format(R"({{"what":"keys.resolve","match":{{"state":"unknown"}},"order":{}{}}})",
                       order, rest);
  };
  const char* const good =
      R"({"as":"completed","evidence":"e","reason":"r","response":{"status":201}})";
  const std::pair<std::string, const char*> orders[] = {
      {job(R"({"as":"completed","evidence":"e","reason":"r"})", R"(,"expected":1)"),
       "/order/response: "},
      {job(R"({"as":"completed","fence":1,"evidence":"e","reason":"r"})", R"(,"expected":1)"),
       "/order: "},
      {job(good, ""), "/expected: "},
      {job(good, R"(,"expected":0)"), "/expected: "},
      {job(good, R"(,"expected":100001)"), "/expected: "},
      {job(good, R"(,"expected":1,"rate":0)"), "/rate: "},
      {job(good, R"(,"expected":1,"rate":1001)"), "/rate: "}};
  for (const auto& [body, where] : orders) {
    const auto answer = post("/v1/jobs", body);
    EXPECT_TRUE(is_problem(answer, 400, "invalid_request")) << body;
    EXPECT_TRUE(json_text(answer.body, "detail").starts_with(where)) << answer.body;
  }
  const std::string nobody(32, '0');
  EXPECT_TRUE(is_problem(get("/v1/jobs/" + nobody), 404, "not_found"));
  EXPECT_TRUE(is_problem(get("/v1/jobs/" + nobody + "/results"), 404, "not_found"));
  EXPECT_TRUE(
      is_problem(post("/v1/jobs/" + nobody + "/cancel", R"({"reason":"r"})"), 404, "not_found"));
  EXPECT_TRUE(is_problem(get("/v1/jobs/x"), 400, "invalid_request"));
  EXPECT_TRUE(is_problem(get("/v1/jobs?limit=101"), 400, "invalid_request"));
}

TEST_F(Jobs, V29_the_command_line_shows_the_number_and_does_it_to_no_other) {
  make_unknown(gateway_->address(), "k", 5);
  const std::vector<std::string> all{
      "keys",     "resolve", "--all",      "--state",         "unknown",  "--as",       "completed",
      "--status", "201",     "--evidence", "the bank's list", "--reason", "ticket 4711"};
  const auto with_words = [&](std::vector<std::string> more) {
    auto words = all;
    words.insert(words.end(), more.begin(), more.end());
    return idem(words);
  };
  EXPECT_EQ(with_words({}).exit_code, 2) << "no terminal and no number";
  const auto other = with_words({"--expect", "4"});
  EXPECT_EQ(other.exit_code, 5) << other.output;
  EXPECT_NE(other.output.find("now 5 records match, not 4"), std::string::npos) << other.output;
  EXPECT_EQ(with_words({"--fence", "1"}).exit_code, 2);
  EXPECT_EQ(idem({"keys", "release", "--reason", "r"}).exit_code, 2);
  EXPECT_EQ(count_of("unknown"), 5U);
  const auto done = with_words({"--expect", "5", "--rate", "500"});
  EXPECT_EQ(done.exit_code, 0) << done.output;
  EXPECT_EQ(count_of("completed"), 5U);
  EXPECT_EQ(with_words({"--expect", "5"}).exit_code, 5);
  EXPECT_EQ(with_words({"--expect", "0"}).exit_code, 4);
  const Json jobs = read("/v1/jobs");
  ASSERT_EQ(jobs["jobs"].items.size(), 1U);
  const std::string id = jobs["jobs"].items[0]["job"].string;
  EXPECT_NE(idem({"jobs", "list"}).output.find(id), std::string::npos);
  EXPECT_NE(idem({"jobs", "show", id}).output.find("ended"), std::string::npos);
  EXPECT_NE(idem({"jobs", "results", id}).output.find("completed"), std::string::npos);
  EXPECT_EQ(idem({"jobs", "cancel", id, "--reason", "r"}).exit_code, 5);
  EXPECT_EQ(idem({"jobs", "show", std::string(32, '0')}).exit_code, 4);
}

class JobsOfOthers : public Jobs {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem-crash");
    Jobs::SetUp();
    restart_with("1h");
    clock_.move_also_under(dir_.path() / "idem.db");
  }
  void restart_with(const std::string& grace) {
    GatewayOptions own = options(provider_->address());
    own.flags = {"--lease", "2s", "--upstream-timeout", "1s", "--evidence-grace", grace};
    own.program = "idem-crash";
    own.environment = {clock_.environment()};
    gateway_.reset();
    gateway_ = std::make_unique<Gateway>(std::move(own));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  MovedClock clock_;
};

TEST_F(JobsOfOthers, S19_a_process_with_a_shorter_grace_does_not_decide_earlier) {
  constexpr int count = 5;
  make_unknown(gateway_->address(), "k", count);
  clock_.pass(60);
  const std::string id =
      begin(R"({"what":"keys.resolve","match":{"state":"unknown"},"expected":5,"rate":1,)"
            R"("order":{"as":"failed_retryable","evidence":"e","reason":"r"}})");
  restart_with("0s");
  const Json job = wait(id);
  EXPECT_EQ(job["done"].integer, 0);
  EXPECT_EQ(job["refused"].integer, count);
  for (const auto& [ref, result] : results_of(gateway_->admin(), id)) {
    EXPECT_EQ(result.verdict, "too_early") << ref;
  }
}

TEST_F(JobsOfOthers, S19_an_absence_counts_from_when_the_operator_looked) {
  constexpr int count = 3;
  make_unknown(gateway_->address(), "k", count);
  restart_with("0s");
  const std::string early = read("/v1/keys?limit=1")["now"].string;
  clock_.pass(60);
  const auto order = [](const std::string& observed_at) {
    return R"({"what":"keys.resolve","match":{"state":"unknown"},"expected":3,"rate":1000,"order":)"
           R"({"as":"failed_retryable","evidence":"e","reason":"r","observed_at":")" +
           observed_at + "\"}}";
  };
  const Json refused = wait(begin(order(early)));
  EXPECT_EQ(refused["refused"].integer, count) << "the attempts could still send";
  EXPECT_EQ(post("/v1/jobs", order("2099-01-01T00:00:00Z")).status, 400);
  EXPECT_EQ(post("/v1/jobs", order("1969-12-31T23:59:59Z")).status, 400);
  EXPECT_EQ(post("/v1/jobs", order("yesterday")).status, 400);
  const Json done = wait(begin(order(read("/v1/keys?limit=1")["now"].string)));
  EXPECT_EQ(done["done"].integer, count);
}

class DamagedJobs : public Jobs {
 protected:
  /// Runs it on the file of the store, which nobody has open.
  std::int64_t sql(const std::string& text) {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open((dir_.path() / "idem.db").c_str(), &db), SQLITE_OK);
    // Else its close deletes the log, which a start misses.
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    std::int64_t number = -1;
    const auto read = [](void* into, int, char** values, char**) {
      *static_cast<std::int64_t*>(into) = std::strtoll(values[0], nullptr, 10);
      return 0;
    };
    if (text.starts_with("SELECT")) {
      sqlite3_exec(db, text.c_str(), read, &number, nullptr);
    } else {
      EXPECT_EQ(change_by_hand(db, text), SQLITE_OK) << sqlite3_errmsg(db);
    }
    sqlite3_close(db);
    return number;
  }
  static constexpr const char* count_markers =
      "SELECT count(*) FROM idem_journal WHERE name GLOB 'open-job/*'";
};

TEST_F(DamagedJobs, S22_a_cancel_closes_them_and_they_hold_no_place) {
  make_unknown(gateway_->address(), "k", 5);
  const std::string id = begin(completing_all(5, 1));
  gateway_->kill();
  ASSERT_EQ(gateway_->process().exit_code(), 128 + SIGKILL);
  EXPECT_EQ(sql(count_markers), 1);
  // The first line, so that nobody knows any more what the job was about.
  sql("DROP TRIGGER journal_is_never_changed;"
      "UPDATE idem_journal SET line = x'00' WHERE name = 'job/" +
      id + "' AND seq = 1");
  gateway_->restart();
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  ASSERT_TRUE(gateway_->process().wait_for_line("job_damaged"));
  const auto cancelled = post("/v1/jobs/" + id + "/cancel", R"({"reason":"it is damaged"})");
  EXPECT_TRUE(is_problem(cancelled, 409, "state_refused")) << cancelled.raw;
  EXPECT_NE(cancelled.body.find("It is closed"), std::string::npos) << cancelled.body;
  const Json audit = read("/v1/audit?ref=" + id);
  EXPECT_EQ(audit["audit"].items.back()["after"].string, "closed: it is damaged");
  gateway_->kill();
  ASSERT_EQ(gateway_->process().exit_code(), 128 + SIGKILL);
  EXPECT_EQ(sql(count_markers), 0);
  EXPECT_GT(sql("SELECT count(*) FROM idem_journal WHERE name GLOB 'job/*'"), 0);
}

class ReleasingJobs : public Jobs {
 protected:
  std::vector<std::string> flags() const override { return {"--preset", "stripe"}; }
};

TEST_F(ReleasingJobs, V36_stored_server_errors_are_released_together_and_answers_are_not) {
  for (const auto* const key : {"a", "b", "c"}) ask(charge(key, "refuse=500"));
  ASSERT_EQ(ask(charge("good")).status, 201);
  const std::string search = R"("what":"keys.release","match":{"scope":"acme"})";
  EXPECT_EQ(preview("{" + search + "}"), 3);
  const std::string id =
      begin("{" + search + R"(,"expected":3,"order":{"reason":"deployed the fix"}})");
  const Json job = wait(id);
  EXPECT_EQ(job["done"].integer, 3);
  EXPECT_EQ(count_of("failed_retryable"), 3U);
  EXPECT_EQ(count_of("completed"), 1U);
  EXPECT_EQ(ask(charge("a")).status, 201);
  EXPECT_EQ(effects("a"), 1);
}

}  // namespace
}  // namespace idem::test
