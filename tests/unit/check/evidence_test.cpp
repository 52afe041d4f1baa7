#include "check/report/reports.hpp"
#include "unit/check/fake_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>

/// What a run may conclude from what it sees: from `effects` that count at once or late, from
/// answers with an id and without, and from an API that limits the rate.
namespace idem::check {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Spec spec_of(const FakeApi& fake, bool has_effects, std::string_view profile = "custom") {
  Spec spec;
  spec.path = "/p";
  spec.body = R"({"amount": {{amount}}, "order": "{{unique}}"})";
  spec.timeout = 1s;
  spec.profile = profile_of(profile).value();
  if (has_effects) {
    spec.effects = Spec::Effects{.url = "http://127.0.0.1:" + fake.port() + "/count",
                                 .command = {},
                                 .pointer = {},
                                 .headers = {},
                                 .settle = {}};
  }
  return spec;
}

/// Executes each key once, replays its answer, refuses another body, and counts under /count.
class RightApi {
 public:
  std::string operator()(FakeApi&, const Arrived& request) {
    const auto now = Clock::now();
    if (request.head.starts_with("GET /count")) {
      const auto counted =
          std::ranges::count_if(executions_, [&](auto at) { return at + lag <= now; });
      return FakeApi::answer(200, std::to_string(counted));
    }
    if (!request.is_whole) return {};
    const std::string key = request.field("Idempotency-Key");
    if (key.empty()) return FakeApi::answer(400, "{}");
    const auto [at, is_new] = records_.try_emplace(key, request.body, std::string());
    auto& [body, answer] = at->second;
    if (!is_new && body != request.body) return FakeApi::answer(422, "{}");
    if (is_new) answer = made(request);
    if (!is_new && executes_again && executes_again()) made(request);
    return answer;
  }
  std::size_t executions() const { return executions_.size(); }

  Clock::duration lag{};
  std::function<bool()> executes_again{};
  /// The answer to the n-th execution; empty: with an id.
  std::function<std::string(std::size_t)> answered{};

 private:
  std::string made(const Arrived&) {
    executions_.push_back(Clock::now());
    if (answered) return answered(executions_.size());
    return FakeApi::answer(201, R"({"id": )" + std::to_string(executions_.size()) + "}");
  }

  std::map<std::string, std::pair<std::string, std::string>> records_;
  std::vector<Clock::time_point> executions_;
};

TEST(CheckEvidence, a_second_execution_that_effects_saw_once_is_a_finding) {
  RightApi right;
  right.executes_again = [retries = 0]() mutable { return ++retries == 3; };
  FakeApi fake(std::ref(right));
  const Report report = run(fake, spec_of(fake, true), {"replay.effect"});
  const CaseResult& result = result_of(report, "replay.effect");
  EXPECT_EQ(result.outcome, Outcome::pass) << "the third retry is of the second attempt";
  RightApi other;
  other.executes_again = [retries = 0]() mutable { return ++retries == 2; };
  FakeApi again(std::ref(other));
  const Report convicted = run(again, spec_of(again, true), {"replay.effect"});
  EXPECT_EQ(outcome_of(convicted, "replay.effect"), Outcome::fail);
  EXPECT_EQ(result_of(convicted, "replay.effect").failures, 1);
  EXPECT_GT(result_of(convicted, "replay.effect").times, 1);
}

TEST(CheckEvidence, what_failed_once_is_shown_with_its_requests_in_each_form) {
  RightApi right;
  int answers = 0;
  FakeApi fake([&](FakeApi& api, const Arrived& request) {
    const std::string answer = right(api, request);
    return ++answers == 4 ? FakeApi::answer(200, "an-answer-of-its-own") : answer;
  });
  Spec spec = spec_of(fake, false);
  spec.resource = JsonPointer::parse("/id").value();
  const Report report = run(fake, spec, {"replay.identical"});
  EXPECT_EQ(outcome_of(report, "replay.identical"), Outcome::pass);
  EXPECT_EQ(result_of(report, "replay.identical").failures, 1);
  const std::string terminal = terminal_report(report, false, 200);
  EXPECT_TRUE(terminal.contains("? correctness Not confirmed: ")) << terminal;
  for (const std::string& text :
       {terminal, json_report(report), junit_report(report), html_report(report)}) {
    EXPECT_TRUE(text.contains("Failed in 1 of ")) << text;
    // In the detail, and as the answer to a request.
    const auto first = text.find("an-answer-of-its-own");
    EXPECT_NE(text.find("an-answer-of-its-own", first + 1), std::string::npos) << text;
  }
  EXPECT_TRUE(sarif_report(report).contains(R"("kind":"review","level":"none")"));
}

TEST(CheckEvidence, a_number_that_is_late_convicts_nobody_and_hides_nothing) {
  RightApi right;
  right.lag = 60ms;
  FakeApi fake(std::ref(right));
  const Report report = run(fake, spec_of(fake, true), {"replay.effect", "key.case", "key.twice"});
  for (const CaseResult& one : report.cases) {
    EXPECT_NE(one.outcome, Outcome::fail) << one.text->id << ": " << one.detail;
    EXPECT_EQ(one.failures, 0) << one.text->id << ": " << one.detail;
  }
  EXPECT_EQ(outcome_of(report, "replay.effect"), Outcome::pass);
  RightApi twice;
  twice.lag = 60ms;
  twice.executes_again = [] { return true; };
  FakeApi broken(std::ref(twice));
  EXPECT_EQ(outcome_of(run(broken, spec_of(broken, true), {"replay.effect"}), "replay.effect"),
            Outcome::fail);
}

TEST(CheckEvidence, the_file_may_say_how_late_the_number_is) {
  RightApi right;
  FakeApi fake(std::ref(right));
  Spec spec = spec_of(fake, true);
  spec.effects->settle = 150ms;
  const auto began = Clock::now();
  run(fake, spec, {"replay.effect"});
  EXPECT_GE(Clock::now() - began, 300ms) << "before and after the case";
}

TEST(CheckEvidence, a_number_that_does_not_move_is_no_number_of_executions) {
  FakeApi fake([](FakeApi&, const Arrived& request) {
    return FakeApi::answer(request.head.starts_with("GET") ? 200 : 201, "7");
  });
  Spec spec = spec_of(fake, true);
  spec.timeout = 200ms;
  Api api(spec, Origin::parse("http://127.0.0.1:" + fake.port()).value(), {.per_second = 0}, 1);
  const auto report = run_cases(api, {});
  ASSERT_FALSE(report);
  EXPECT_TRUE(report.error().contains("did not change")) << report.error();
}

TEST(CheckEvidence, answers_that_are_all_the_same_prove_nothing) {
  RightApi right;
  right.answered = [](std::size_t) { return FakeApi::answer(201, R"({"status":"ok"})"); };
  right.executes_again = [] { return true; };
  FakeApi fake(std::ref(right));
  Spec spec = spec_of(fake, false);
  spec.tenant = Spec::Tenant{"X-Tenant-Id", "check-2"};
  spec.other_query = "a=b";
  const std::vector<std::string> cases{"replay.effect", "race.two", "scope.other",
                                       "misuse.query",  "key.case", "key.truncated"};
  const Report blind = run(fake, spec, cases);
  for (const std::string& id : cases) EXPECT_EQ(outcome_of(blind, id), Outcome::skip) << id;
  // An echo of the request is no id either.
  FakeApi echo([](FakeApi&, const Arrived& request) { return FakeApi::answer(201, request.body); });
  EXPECT_EQ(outcome_of(run(echo, spec_of(echo, false), {"replay.effect"}), "replay.effect"),
            Outcome::skip);
  // `effects` know.
  Spec seeing = spec_of(fake, true);
  EXPECT_EQ(outcome_of(run(fake, seeing, {"replay.effect"}), "replay.effect"), Outcome::fail);
}

TEST(CheckEvidence, location_is_an_id_where_the_file_names_none) {
  RightApi right;
  right.answered = [](std::size_t number) {
    return "HTTP/1.1 303 X\r\nLocation: /p/" + std::to_string(number) +
           "\r\nContent-Length: 0\r\n\r\n";
  };
  FakeApi fake(std::ref(right));
  EXPECT_EQ(outcome_of(run(fake, spec_of(fake, false), {"replay.effect"}), "replay.effect"),
            Outcome::pass);
  int made = 0;
  FakeApi broken([&](FakeApi&, const Arrived&) {
    return "HTTP/1.1 201 X\r\nLocation: /p/" + std::to_string(++made) +
           "\r\nContent-Length: 0\r\n\r\n";
  });
  Spec spec = spec_of(broken, false);
  spec.resource_header = "location";
  EXPECT_EQ(outcome_of(run(broken, spec, {"replay.effect"}), "replay.effect"), Outcome::fail);
}

TEST(CheckEvidence, different_bodies_without_an_id_claim_no_second_charge) {
  int answers = 0;
  FakeApi fake([&](FakeApi&, const Arrived&) {
    return FakeApi::answer(201, R"({"request": )" + std::to_string(++answers) + "}");
  });
  const Report report = run(fake, spec_of(fake, false), {"replay.effect", "replay.identical"});
  EXPECT_EQ(outcome_of(report, "replay.effect"), Outcome::skip);
  EXPECT_EQ(outcome_of(report, "replay.identical"), Outcome::fail);
}

TEST(CheckEvidence, an_answer_without_an_id_is_no_execution) {
  std::map<std::string, int> ids;
  FakeApi fake([&](FakeApi&, const Arrived& request) {
    const auto [at, is_new] =
        ids.try_emplace(request.field("Idempotency-Key"), static_cast<int>(ids.size()));
    return is_new ? FakeApi::answer(201, R"({"id": )" + std::to_string(at->second) + "}")
                  : FakeApi::answer(202, R"({"status": "processing"})");
  });
  Spec spec = spec_of(fake, false);
  spec.resource = JsonPointer::parse("/id").value();
  const Report report = run(fake, spec, {"replay.effect", "race.two", "race.ten"});
  for (const CaseResult& one : report.cases) {
    EXPECT_EQ(one.outcome, Outcome::pass) << one.text->id << ": " << one.detail;
  }
}

TEST(CheckEvidence, a_request_that_ran_without_an_answer_is_found_by_effects) {
  RightApi right;
  FakeApi fake([&](FakeApi& api, const Arrived& request) -> std::string {
    const bool is_wrong = request.field("Idempotency-Key").empty() ||
                          request.field("Idempotency-Key").contains('\xFF');
    if (!is_wrong || request.head.starts_with("GET")) return right(api, request);
    Arrived other = request;
    other.head += "Idempotency-Key: none-" + std::to_string(right.executions()) + "\r\n";
    right(api, other);
    return {};
  });
  const Report report = run(fake, spec_of(fake, true, "ietf"), {"key.missing", "key.nonascii"});
  EXPECT_EQ(outcome_of(report, "key.missing"), Outcome::fail);
  EXPECT_EQ(outcome_of(report, "key.nonascii"), Outcome::fail);
  const CaseResult& missing = result_of(report, "key.missing");
  EXPECT_TRUE(missing.detail.contains("executed the operation once")) << missing.detail;
}

TEST(CheckEvidence, another_operation_that_is_not_there_is_no_judge) {
  RightApi right;
  FakeApi fake([&](FakeApi& api, const Arrived& request) -> std::string {
    if (request.head.starts_with("PUT")) return FakeApi::answer(405, "{}");
    if (request.head.contains("/q/")) return FakeApi::answer(404, "{}");
    return right(api, request);
  });
  Spec spec = spec_of(fake, true);
  spec.other_path = "/q/{{unique}}";
  spec.other_method = "PUT";
  const Report report = run(fake, spec, {"misuse.path", "misuse.method"});
  EXPECT_EQ(outcome_of(report, "misuse.path"), Outcome::skip);
  EXPECT_EQ(outcome_of(report, "misuse.method"), Outcome::skip);
  const auto all = fake.arrived();
  EXPECT_TRUE(std::ranges::any_of(
      all, [](const Arrived& one) { return one.head.contains("/q/idem-check-"); }));
}

TEST(CheckEvidence, a_race_needs_contenders) {
  RightApi right;
  int met = 0;
  FakeApi fake([&](FakeApi& api, const Arrived& request) -> std::string {
    // After the two requests before all cases, one of ten is answered.
    const bool is_order = request.head.starts_with("POST");
    if (is_order && ++met > 2 && met % 10 != 3) return FakeApi::answer(429, "{}");
    return right(api, request);
  });
  Spec spec = spec_of(fake, false);
  spec.timeout = 300ms;
  const Report report = run(fake, spec, {"race.ten"});
  EXPECT_EQ(outcome_of(report, "race.ten"), Outcome::skip);
}

TEST(CheckEvidence, a_limit_of_the_rate_is_waited_for) {
  RightApi right;
  int requests = 0;
  FakeApi fake([&](FakeApi& api, const Arrived& request) -> std::string {
    if (++requests % 3 == 0) {
      return "HTTP/1.1 429 X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n";
    }
    return right(api, request);
  });
  Spec spec = spec_of(fake, false);
  spec.resource = JsonPointer::parse("/id").value();
  const Report report = run(fake, spec, {"replay.effect"});
  EXPECT_EQ(outcome_of(report, "replay.effect"), Outcome::pass);
}

TEST(CheckEvidence, cookies_that_all_requests_get_are_not_stored_ones) {
  RightApi right;
  right.answered = [](std::size_t number) {
    const std::string body = R"({"id": )" + std::to_string(number) + "}";
    return "HTTP/1.1 201 X\r\nSet-Cookie: node=1\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  FakeApi fake(std::ref(right));
  EXPECT_EQ(outcome_of(run(fake, spec_of(fake, true), {"replay.cookie"}), "replay.cookie"),
            Outcome::pass);
}

TEST(CheckEvidence, interim_answers_are_no_part_of_a_body) {
  RightApi right;
  right.answered = [](std::size_t number) {
    return "HTTP/1.1 103 X\r\nLink: </a>\r\n\r\n" +
           FakeApi::answer(201, R"({"id": )" + std::to_string(number) + "}");
  };
  FakeApi fake(std::ref(right));
  EXPECT_EQ(outcome_of(run(fake, spec_of(fake, true), {"replay.length"}), "replay.length"),
            Outcome::pass);
}

TEST(CheckEvidence, a_proxy_of_the_environment_is_not_asked) {
  RightApi right;
  FakeApi fake(std::ref(right));
  ::setenv("http_proxy", "http://127.0.0.1:1", 1);
  ::setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
  const Report report = run(fake, spec_of(fake, true), {"replay.effect"});
  ::unsetenv("http_proxy");
  ::unsetenv("ALL_PROXY");
  EXPECT_EQ(outcome_of(report, "replay.effect"), Outcome::pass);
}

TEST(CheckEvidence, uuids_are_tried_last) {
  RightApi right;
  FakeApi fake([&](FakeApi& api, const Arrived& request) -> std::string {
    const std::string key = request.field("Idempotency-Key");
    const bool is_uuid = key.size() == 36 && key[14] == '4' && key[8] == '-';
    return is_uuid ? right(api, request) : FakeApi::answer(400, "{}");
  });
  Spec spec = spec_of(fake, false, "ietf");
  spec.resource = JsonPointer::parse("/id").value();
  const Report report = run(fake, spec, {"replay.effect"});
  EXPECT_EQ(outcome_of(report, "replay.effect"), Outcome::pass);
  EXPECT_TRUE(report.key_mark.starts_with("1de3c4ec-")) << report.key_mark;
}

TEST(CheckEvidence, a_proxy_that_answers_for_a_restarting_api_is_not_the_api) {
  RightApi right;
  Spec spec;
  std::set<std::string> seen;
  int refused = 0;
  FakeApi fake([&](FakeApi& api, const Arrived& request) -> std::string {
    const std::string key = request.field("Idempotency-Key");
    // The third time that a key comes is after the restart: the API forgot it, and starts.
    if (request.head.starts_with("POST") && !seen.insert(key).second && ++refused % 4 >= 2) {
      if (refused % 4 == 2) return FakeApi::answer(502, "starting");
      Arrived forgotten = request;
      forgotten.head.replace(forgotten.head.find(key), key.size(), key + "x");
      return right(api, forgotten);
    }
    return right(api, request);
  });
  spec = spec_of(fake, true);
  spec.restart = "true";
  EXPECT_EQ(outcome_of(run(fake, spec, {"restart.replay"}), "restart.replay"), Outcome::fail);
}

TEST(CheckEvidence, the_rate_is_kept_below_one_and_effects_count_as_requests) {
  RightApi right;
  FakeApi fake(std::ref(right));
  const Spec spec = spec_of(fake, true);
  Api api(spec, Origin::parse("http://127.0.0.1:" + fake.port()).value(), {.per_second = 4}, 1);
  const auto began = Clock::now();
  for (int i = 0; i < 2; ++i) api.take_turn();
  ASSERT_TRUE(api.effects());
  EXPECT_GE(Clock::now() - began, 500ms);
  EXPECT_EQ(api.requests(), 3U);
  Api slow(spec, Origin::parse("http://127.0.0.1:" + fake.port()).value(), {.per_second = 0.8}, 1);
  const auto again = Clock::now();
  for (int i = 0; i < 2; ++i) slow.take_turn();
  EXPECT_GE(Clock::now() - again, 1'200ms);
}

TEST(CheckEvidence, an_answer_that_keeps_coming_ends_with_the_timeout) {
  FakeApi fake([](FakeApi&, const Arrived&) {
    std::string body = "HTTP/1.1 201 X\r\nTransfer-Encoding: chunked\r\n\r\n";
    while (body.size() < (2UL << 20)) body += "1\r\nx\r\n";
    return body;
  });
  Spec spec = spec_of(fake, false);
  Api api(spec, Origin::parse("http://127.0.0.1:" + fake.port()).value(), {.per_second = 0}, 1);
  const auto report = run_cases(api, {});
  ASSERT_FALSE(report);
  EXPECT_TRUE(report.error().contains("longer than 1 MiB")) << report.error();
}

}  // namespace
}  // namespace idem::check
