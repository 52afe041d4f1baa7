#include "unit/check/fake_run.hpp"

#include "core/bytes/ascii.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

/// How a run judges an API: what is no pass, what it compares, and how it ends.
namespace idem::check {
namespace {

using namespace std::chrono_literals;

Spec spec_of(std::string_view profile = "ietf") {
  Spec spec;
  spec.path = "/p";
  spec.body = R"({"amount": {{amount}}, "order": "{{unique}}"})";
  spec.resource = JsonPointer::parse("/id").value();
  spec.timeout = 1s;
  spec.profile = profile_of(profile).value();
  return spec;
}

/// Executes each key once and replays its id, in a body that differs each time.
class UnstableBodies {
 public:
  std::string operator()(FakeApi&, const Arrived& request) {
    if (!request.is_whole) return {};
    const std::string key = request.field("Idempotency-Key");
    if (key.empty()) return FakeApi::answer(400, "{}");
    const auto [at, is_new] = ids_.try_emplace(key, ids_.size());
    return FakeApi::answer(201, R"({"id": "p)" + std::to_string(at->second) + R"(", "at": )" +
                                    std::to_string(++clock_) + "}");
  }

 private:
  std::map<std::string, std::size_t> ids_;
  int clock_ = 0;
};

TEST(CheckRun, an_api_that_ends_in_a_case_fails_it_and_the_run_ends) {
  FakeApi fake([right = UnstableBodies()](FakeApi& api, const Arrived& request) mutable {
    if (!request.is_whole) api.stop_listening();
    return right(api, request);
  });
  const Report report = run(fake, spec_of(), {"abort.body", "key", "misuse"});
  EXPECT_FALSE(report.passes());
  EXPECT_EQ(report.ended_early, "the API stopped accepting connections in `abort.body`");
  const CaseResult& crash = result_of(report, "abort.body");
  EXPECT_EQ(crash.outcome, Outcome::fail);
  EXPECT_TRUE(crash.detail.starts_with("The API stopped accepting connections")) << crash.detail;
  std::size_t left_out = 0;
  for (const CaseResult& one : report.cases) {
    if (one.detail == "The run ended before: " + report.ended_early + ".") ++left_out;
  }
  EXPECT_GT(left_out, 0U);
}

TEST(CheckRun, no_case_passes_without_an_answer) {
  int requests = 0;
  FakeApi fake([&](FakeApi&, const Arrived&) -> std::string {
    // The run begins with two requests that must be accepted.
    if (++requests > 2) return {};
    return FakeApi::answer(201, R"({"id": )" + std::to_string(requests) + "}");
  });
  Spec spec = spec_of();
  spec.timeout = 100ms;
  spec.retention = 200ms;
  const Report report = run(fake, spec, {});
  for (const CaseResult& one : report.cases) {
    EXPECT_NE(one.outcome, Outcome::pass) << one.text->id << ": " << one.detail;
  }
  EXPECT_EQ(report.cases.size(), all_cases().size());
}

TEST(CheckRun, a_replay_with_another_byte_is_the_same_result) {
  FakeApi fake{UnstableBodies()};
  Spec spec = spec_of("custom");
  spec.tenant = Spec::Tenant{"X-Tenant-Id", "check-2"};
  spec.other_path = "/q";
  spec.other_method = "PUT";
  spec.other_query = "a=b";
  spec.restart = "true";
  spec.retention = 300ms;
  const Report report =
      run(fake, spec, {"misuse", "scope", "key.case", "key.truncated", "expiry", "restart"});
  for (const char* const leak :
       {"misuse.body", "misuse.path", "misuse.method", "misuse.query", "scope.other"}) {
    EXPECT_EQ(outcome_of(report, leak), Outcome::fail) << leak;
  }
  EXPECT_TRUE(result_of(report, "misuse.body").detail.contains("the answer to the first request"));
  for (const char* const right : {"key.case", "key.truncated", "expiry", "restart.replay"}) {
    EXPECT_EQ(outcome_of(report, right), Outcome::pass) << result_of(report, right).detail;
  }
}

TEST(CheckRun, keys_that_become_one_are_found_by_the_result) {
  FakeApi fake([right = UnstableBodies()](FakeApi& api, Arrived request) mutable {
    const std::string key = request.field("Idempotency-Key");
    const std::string folded = lower_case(key.substr(0, 60));
    if (!key.empty()) request.head.replace(request.head.find(key), key.size(), folded);
    return right(api, request);
  });
  const Report report = run(fake, spec_of("custom"), {"key.case", "key.truncated"});
  EXPECT_EQ(outcome_of(report, "key.case"), Outcome::fail);
  EXPECT_EQ(outcome_of(report, "key.truncated"), Outcome::fail);
}

TEST(CheckRun, all_keys_begin_with_the_mark_and_differ) {
  FakeApi fake{UnstableBodies()};
  for (int i = 0; i < 2; ++i) {
    const Report report = run(fake, spec_of(), {"key"});
    std::set<std::string> beyond_ascii;
    for (const Arrived& one : fake.arrived()) {
      std::string key = one.field("Idempotency-Key");
      if (key.contains('\xFF')) beyond_ascii.insert(key);
      if (key.starts_with('"')) key.erase(0, 1);
      if (key.empty()) continue;
      EXPECT_TRUE(key.starts_with("idem-check-")) << key;
    }
    // The case fails here, so that it is sent again.
    EXPECT_EQ(beyond_ascii.size(), (i + 1) * 2U);
    EXPECT_TRUE(std::ranges::any_of(
        beyond_ascii, [&](const auto& key) { return key.contains(report.key_mark + "-"); }));
  }
}

TEST(CheckRun, a_client_that_leaves_an_operation_of_milliseconds_proves_nothing) {
  FakeApi fake{UnstableBodies()};
  const Report report = run(fake, spec_of(), {"abort.client"});
  EXPECT_EQ(outcome_of(report, "abort.client"), Outcome::skip);
  EXPECT_EQ(result_of(report, "abort.client").detail, "`slow` is not set.");
}

TEST(CheckRun, a_limit_and_an_interruption_leave_a_report) {
  FakeApi fake{UnstableBodies()};
  const Report limited = run(fake, spec_of("custom"), {}, {.requests_max = 20});
  EXPECT_TRUE(limited.ended_early.contains("--max-requests")) << limited.ended_early;
  EXPECT_EQ(limited.cases.size(), all_cases().size());
  EXPECT_LE(limited.requests, 20U);
  EXPECT_TRUE(std::ranges::any_of(limited.cases, [](const CaseResult& one) {
    return one.detail.starts_with("The run ended before: its limit of 20 requests");
  }));
  int asked = 0;
  const Report interrupted =
      run(fake, spec_of("custom"), {}, {.is_interrupted = [&] { return ++asked > 10; }});
  EXPECT_EQ(interrupted.ended_early, "it was interrupted");
  EXPECT_EQ(interrupted.cases.size(), all_cases().size());
}

TEST(CheckRun, a_dry_run_shows_a_cut_request_as_it_is_sent) {
  FakeApi fake{UnstableBodies()};
  std::vector<std::string> shown;
  run(fake, spec_of(), {"abort.body"},
      {.dry_run = [&](const std::string&, const std::string& bytes) { shown.push_back(bytes); }});
  ASSERT_GE(shown.size(), 3U);
  EXPECT_TRUE(shown[1].contains("POST /p HTTP/1.1\r\n")) << shown[1];
  EXPECT_LT(shown[1].size(), shown[2].size());
  EXPECT_FALSE(shown[1].ends_with('}')) << shown[1];
  EXPECT_TRUE(fake.arrived().empty());
}

TEST(CheckRun, a_form_is_a_body_as_any_other) {
  FakeApi fake{UnstableBodies()};
  Spec spec = spec_of("custom");
  spec.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  spec.body = "amount={{amount}}&description={{unique}}";
  const Report report = run(fake, spec, {"replay.effect", "misuse.body", "race.two"});
  EXPECT_EQ(outcome_of(report, "replay.effect"), Outcome::pass);
  EXPECT_EQ(outcome_of(report, "misuse.body"), Outcome::fail);
  EXPECT_TRUE(fake.arrived()[0].body.starts_with("amount=1")) << fake.arrived()[0].body;
  EXPECT_EQ(fake.arrived()[0].field("Content-Type"), "application/x-www-form-urlencoded");
}

TEST(CheckRun, the_calls_of_a_race_are_in_order_and_without_chunks) {
  int made = 0;
  FakeApi fake([&](FakeApi&, const Arrived&) {
    return "HTTP/1.1 201 X\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"id\": " +
           std::to_string(++made % 8 + 1) + "\r\n1\r\n}\r\n0\r\n\r\n";
  });
  const Report report = run(fake, spec_of("custom"), {"race.ten"});
  const CaseResult& race = result_of(report, "race.ten");
  ASSERT_EQ(race.outcome, Outcome::fail) << race.detail;
  ASSERT_GT(race.calls.size(), 2U);
  int before = 0;
  for (const Call& call : race.calls) {
    EXPECT_TRUE(
        call.answer.ends_with("\r\n\r\n{\"id\": " + call.answer.substr(call.answer.size() - 2)))
        << call.answer;
    if (!call.what.starts_with("a copy, ")) continue;
    const int number = std::stoi(call.what.substr(8));
    EXPECT_GT(number, before);
    before = number;
  }
}

TEST(CheckRun, names_of_cases_and_groups_are_known) {
  EXPECT_TRUE(are_known({"race", "key.case"}));
  EXPECT_EQ(are_known({"race", "rac"}).error(), "rac");
}

}  // namespace
}  // namespace idem::check
