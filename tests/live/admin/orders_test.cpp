#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "support/admin.hpp"
#include "support/back_off.hpp"
#include "support/moved_clock.hpp"

namespace idem::test {
namespace {

/// A short lease, so that the moment from which "nothing there" counts really comes.
class AdminOrders : public Operated {
 protected:
  std::vector<std::string> flags() const override {
    return {"--lease", "2s", "--upstream-timeout", "1s", "--evidence-grace", "0s"};
  }

  std::string path(const Json& record, const char* verb) {
    return "/v1/keys/" + record["ref"].string + "/" + verb;
  }
  static std::string releasing(const Json& record, std::string_view reason) {
    return fmt::format(R"({{"fence":{},"reason":"{}"}})", record["fence"].integer, reason);
  }
  static std::string resolving(const Json& record, std::string_view as,
                               std::string_view more = {}) {
    return fmt::format(R"({{"as":"{}","fence":{},"evidence":"charge ch_1 at the provider",)"
                       R"("reason":"ticket 4711"{}}})",
                       as, record["fence"].integer, more);
  }
};

constexpr std::string_view found_answer =
    R"(,"response":{"status":201,"headers":[["Content-Type","text/plain"],["ETag","\"1\""]],)"
    R"("body_b64":"Zm91bmQ="})";

TEST_F(AdminOrders, V29_an_unknown_record_is_seen_settled_by_evidence_and_then_replayed) {
  ask(charge("k", "drop-after"));
  EXPECT_TRUE(is_problem(ask(charge("k")), 409, "outcome_unknown"))
      << "a client cannot run it again";
  const Json record = only("unknown");
  EXPECT_GE(metric("idem_keys{state=\"unknown\"}"), 1);
  auto request =
      nameless_order(path(record, "resolve"), resolving(record, "completed", found_answer));
  request.fields.push_back({"Idem-Operator", "ada"});
  const auto resolved = send_once(gateway_->admin(), request);
  ASSERT_EQ(resolved.status, 200) << resolved.raw;
  EXPECT_EQ(json_text(resolved.body, "state"), "completed");
  const auto replay = ask(charge("k"));
  EXPECT_EQ(replay.status, 201);
  EXPECT_EQ(replay.body, "found");
  EXPECT_EQ(replay.get("ETag"), "\"1\"");
  EXPECT_EQ(replay.get("Idempotent-Replayed"), "true");
  EXPECT_EQ(effects("k"), 1);
  const Json shown = read("/v1/keys/" + record["ref"].string);
  ASSERT_EQ(shown["evidence"].items.size(), 1U);
  const Json& line = shown["evidence"].items[0];
  EXPECT_EQ(line["source"].string, "operator:ada");
  EXPECT_EQ(line["reason"].string, "ticket 4711");
  EXPECT_EQ(line["evidence"].string, "charge ch_1 at the provider");
  EXPECT_EQ(line["before"].string, "unknown");
  EXPECT_EQ(line["after"].string, "completed");
  EXPECT_TRUE(line["applied"].boolean);
  EXPECT_EQ(line["recorded_at"].string.size(), 24U);
  EXPECT_TRUE(gateway_->process().wait_for_line("source=operator:ada"));
}

TEST_F(AdminOrders, V29_S19_that_nothing_is_there_counts_only_once_the_attempt_cannot_run) {
  ask(charge("older", "drop-before"));
  const Json older = only("unknown");
  EXPECT_EQ(ask(charge("k", "drop-before")).status, 502);
  const auto ref = read("/v1/keys?scope=acme&operation=POST+/charges&key=k")["keys"].items.at(0);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  Response answer;
  do {
    answer = post(path(ref, "resolve"), resolving(ref, "failed_retryable"));
    if (answer.status != 409) break;
    EXPECT_TRUE(is_problem(answer, 409, "state_refused"));
    EXPECT_NE(answer.body.find("look again after 20"), std::string::npos) << answer.body;
    EXPECT_EQ(json_text(answer.body, "verdict"), "too_early") << answer.body;
    EXPECT_EQ(json_text(answer.body, "counts_from").size(), 24U) << answer.body;
    EXPECT_NE(answer.body.find("Too early until " + json_text(answer.body, "counts_from")),
              std::string::npos);
    back_off();
  } while (std::chrono::steady_clock::now() < deadline);
  ASSERT_EQ(answer.status, 200) << answer.raw;
  const auto retry = ask(charge("k"));
  EXPECT_EQ(retry.status, 201) << "the retry runs";
  EXPECT_FALSE(retry.get("Idempotent-Replayed"));
  EXPECT_EQ(effects("k"), 1);
  EXPECT_EQ(metric("idem_reserve_total{outcome=\"failed_retry\"}"), 1);
  // The lease of the older one is over, too; what was seen before that still proves nothing.
  const auto seen = fmt::format(R"(,"observed_at":"{}")", older["created_at"].string);
  const auto early = post(path(older, "resolve"), resolving(older, "failed_retryable", seen));
  EXPECT_TRUE(is_problem(early, 409, "state_refused"));
  const Json story = read("/v1/keys/" + older["ref"].string)["evidence"];
  ASSERT_EQ(story.items.size(), 1U);
  EXPECT_NE(story.items[0]["reason"].string.find("refused: too early until 20"), std::string::npos)
      << story.items[0]["reason"].string;
  EXPECT_TRUE(is_problem(ask(charge("older")), 409, "outcome_unknown"));
  EXPECT_EQ(post(path(older, "resolve"), resolving(older, "failed_retryable")).status, 200);
  EXPECT_EQ(ask(charge("older")).status, 201);
}

TEST_F(AdminOrders, name_the_operator_in_the_body_or_in_the_head) {
  ask(charge("lost", "drop-after"));
  const Json lost = only("unknown");
  const auto by = [&](std::string_view name) {
    return resolving(lost, "completed",
                     std::string(found_answer) + R"(,"by":)" + std::string(name));
  };
  for (const auto* bad : {R"("")", R"("a b")", "7", R"("a\nb")"}) {
    const auto answer =
        send_once(gateway_->admin(), nameless_order(path(lost, "resolve"), by(bad)));
    EXPECT_EQ(answer.status, 400) << bad;
    EXPECT_NE(answer.body.find("/by: "), std::string::npos) << answer.body;
  }
  const auto both = order(path(lost, "resolve"), by(R"("ada")"));
  EXPECT_EQ(send_once(gateway_->admin(), both).status, 400);
  EXPECT_TRUE(read("/v1/keys/" + lost["ref"].string)["evidence"].items.empty());
  // Nobody's decision is none.
  for (const auto& [target, body] :
       {std::pair(path(lost, "resolve"), resolving(lost, "completed", found_answer)),
        std::pair(path(lost, "release"), releasing(lost, "r"))}) {
    const auto anonymous = send_once(gateway_->admin(), nameless_order(target, body));
    EXPECT_TRUE(is_problem(anonymous, 400, "invalid_request")) << anonymous.raw;
    EXPECT_NE(anonymous.body.find("say by name who decides"), std::string::npos) << anonymous.body;
  }
  EXPECT_TRUE(read("/v1/keys/" + lost["ref"].string)["evidence"].items.empty());
  const auto done =
      send_once(gateway_->admin(), nameless_order(path(lost, "resolve"), by(R"("ada@ops-1")")));
  ASSERT_EQ(done.status, 200) << done.raw;
  const Json shown = parse_json(done.body).value_or(Json{});
  ASSERT_EQ(shown["evidence"].items.size(), 1U);
  EXPECT_EQ(shown["evidence"].items[0]["source"].string, "operator:ada@ops-1");
}

TEST_F(AdminOrders, S19_are_refused_where_the_state_does_not_allow_them) {
  ask(charge("done"));
  ask(charge("lost", "drop-after"));
  const Json done = only("completed");
  const Json lost = only("unknown");
  const auto wrong_fence =
      fmt::format(R"({{"as":"completed","fence":{},"evidence":"e","reason":"r"{}}})",
                  lost["fence"].integer + 1, found_answer);
  const std::pair<std::string, std::string> cases[] = {
      {path(done, "resolve"), resolving(done, "completed", found_answer)},
      {path(lost, "resolve"), wrong_fence},
      {path(lost, "resolve"), resolving(lost, "completed")},
      {path(lost, "release"), releasing(lost, "try again")},
      {path(done, "release"), releasing(done, "201 is no 5xx")}};
  for (const auto& [target, body] : cases) {
    const auto answer = post(target, body);
    EXPECT_TRUE(is_problem(answer, 409, "state_refused")) << body;
    EXPECT_FALSE(json_text(answer.body, "state").empty());
    EXPECT_FALSE(json_text(answer.body, "detail").empty());
  }
  EXPECT_TRUE(is_problem(ask(charge("lost")), 409, "outcome_unknown"));
  const Json story = read("/v1/keys/" + lost["ref"].string)["evidence"];
  ASSERT_EQ(story.items.size(), 3U) << "a refused order is kept, too";
  const std::string own_fence = std::to_string(lost["fence"].integer);
  EXPECT_EQ(story.items[0]["reason"].string,
            "r (refused: wrong_fence, the current attempt has fence " + own_fence + ")");
  EXPECT_EQ(story.items[1]["reason"].string,
            "ticket 4711 (refused: missing_response; the record is contested from now on)");
  EXPECT_EQ(story.items[2]["reason"].string, "try again (refused: wrong_state)");
  const auto gone = "/v1/keys/" + std::string(32, 'a');
  EXPECT_TRUE(is_problem(post(gone + "/release", releasing(lost, "r")), 404, "not_found"));
  EXPECT_TRUE(is_problem(post(gone + "/resolve", resolving(lost, "completed", found_answer)), 404,
                         "not_found"));
}

TEST_F(AdminOrders, S22_a_contested_record_is_not_promised_to_be_freed_later) {
  ask(charge("lost", "drop-after"));
  const Json lost = only("unknown");
  const auto without_answer = post(path(lost, "resolve"), resolving(lost, "completed"));
  EXPECT_TRUE(is_problem(without_answer, 409, "state_refused"));
  EXPECT_EQ(json_text(without_answer.body, "verdict"), "missing_response");
  EXPECT_NE(without_answer.body.find("the record is contested"), std::string::npos)
      << without_answer.body;
  const auto seen = fmt::format(R"(,"observed_at":"{}")", lost["created_at"].string);
  const auto freed = post(path(lost, "resolve"), resolving(lost, "failed_retryable", seen));
  EXPECT_TRUE(is_problem(freed, 409, "state_refused"));
  EXPECT_EQ(freed.body.find("look again"), std::string::npos) << freed.body;
  EXPECT_EQ(freed.body.find("counts_from"), std::string::npos) << freed.body;
  EXPECT_NE(freed.body.find("the record is contested"), std::string::npos) << freed.body;
  const Json story = read("/v1/keys/" + lost["ref"].string)["evidence"];
  ASSERT_EQ(story.items.size(), 2U);
  EXPECT_EQ(story.items[1]["reason"].string,
            "ticket 4711 (refused: by_evidence, the record is contested)");
}

TEST_F(AdminOrders, are_refused_when_malformed_and_change_nothing) {
  ask(charge("lost", "drop-after"));
  const Json lost = only("unknown");
  const auto resolve = path(lost, "resolve");
  const auto fence = std::to_string(lost["fence"].integer);
  const auto rest = R"(,"fence":)" + fence + R"(,"evidence":"e","reason":"r")";
  const auto response = [&](std::string_view members) {
    return R"({"as":"completed")" + rest + R"(,"response":{)" + std::string(members) + "}}";
  };
  const std::pair<std::string, const char*> cases[] = {
      {"", "byte 0: "},
      {"{", "byte "},
      {"[]", "body: "},
      {R"({"as":"completed","as":"failed_retryable")" + rest + "}", "byte "},
      {R"({"as":"expired")" + rest + "}", "/as: "},
      {R"({"fence":)" + fence + R"(,"evidence":"e","reason":"r"})", "/as: "},
      {R"({"as":"completed","fence":"7","evidence":"e","reason":"r"})", "/fence: "},
      {R"({"as":"completed","fence":-1,"evidence":"e","reason":"r"})", "/fence: "},
      {R"({"as":"completed","fence":1.5,"evidence":"e","reason":"r"})", "/fence: "},
      {R"({"as":"completed","fence":7,"reason":"r"})", "/evidence: "},
      {R"({"as":"completed","fence":7,"evidence":" ","reason":"r"})", "/evidence: "},
      {R"({"as":"completed","fence":7,"evidence":"idem-sealed:AA==","reason":"r"})", "/evidence: "},
      {R"({"as":"completed","fence":7,"evidence":"e","reason":""})", "/reason: "},
      {R"({"as":"completed","fence":7,"evidence":"e","reason":")" + std::string(1025, 'r') + "\"}",
       "/reason: "},
      {R"({"as":"completed","who":"me")" + rest + "}", "body: "},
      {R"({"as":"completed","observed_at":"yesterday")" + rest + "}", "/observed_at: "},
      {R"({"as":"failed_retryable")" + rest + R"(,"response":{"status":200}})", "/response: "},
      {response(R"("status":199)"), "/response/status: "},
      {response(R"("status":600)"), "/response/status: "},
      {response(R"("headers":[])"), "/response/status: "},
      {response(R"("status":200,"body":"x")"), "/response: "},
      {response(R"("status":200,"body_b64":"Zm9")"), "/response/body_b64: "},
      {response(R"("status":204,"body_b64":"Zm9v")"), "/response/body_b64: "},
      {response(R"("status":200,"headers":[["A"]])"), "/response/headers/0: "},
      {response(R"("status":200,"headers":[["A","1"],["B:","2"]])"), "/response/headers/1/0: "},
      {response(R"("status":200,"headers":[["A","1\r\nSet-Cookie: x"]])"),
       "/response/headers/0/1: "},
      {response(R"("status":200,"headers":[["Set-Cookie","a=b"]])"), "/response/headers/0/0: "},
      {response(R"("status":200,"headers":[["Content-Length","5"]])"), "/response/headers/0/0: "},
      {response(R"("status":200,"headers":[["Transfer-Encoding","chunked"]])"),
       "/response/headers/0/0: "},
      {response(R"("status":200,"headers":[["Idempotent-Replayed","true"]])"),
       "/response/headers/0/0: "}};
  for (const auto& [body, where] : cases) {
    const auto answer = post(resolve, body);
    EXPECT_TRUE(is_problem(answer, 400, "invalid_request")) << body;
    EXPECT_TRUE(json_text(answer.body, "detail").starts_with(where)) << body << "\n" << answer.body;
  }
  for (const auto* body :
       {"{}", R"({"reason":"r"})", R"({"fence":1})", R"({"fence":1,"reason":""})",
        R"({"fence":1,"reason":7})", R"({"fence":0,"reason":"r"})", R"({"fence":"1","reason":"r"})",
        R"({"fence":1,"reason":"r","a":1})"}) {
    EXPECT_TRUE(is_problem(post(path(lost, "release"), body), 400, "invalid_request")) << body;
  }
  const Json after = read("/v1/keys/" + lost["ref"].string);
  EXPECT_EQ(after["state"].string, "unknown");
  EXPECT_EQ(after["evidence"].items.size(), 0U);
}

TEST_F(AdminOrders, their_texts_reach_no_terminal_raw) {
  ask(charge("done"));
  const Json done = only("completed");
  post(path(done, "release"),
       R"({"fence":1,"reason":"\u001b]0;title\u0007 \"a\" \u0085\u202e\u007f"})");
  const auto line = gateway_->process().wait_for_line(" release ");
  ASSERT_TRUE(line);
  EXPECT_NE(line->find(R"(reason="\x1b]0;title\x07 \"a\" \xc2\x85\xe2\x80\xae\x7f")"),
            std::string::npos)
      << *line;
  EXPECT_TRUE(std::ranges::all_of(*line, [](char c) { return c >= ' ' && c < 0x7F; })) << *line;
}

TEST_F(AdminOrders, need_the_media_type_that_no_web_page_sends_unasked) {
  ask(charge("lost", "drop-after"));
  const Json lost = only("unknown");
  const auto good = order(path(lost, "resolve"), resolving(lost, "completed", found_answer));
  for (const auto* type :
       {"text/plain", "application/x-www-form-urlencoded", "application/jsonp"}) {
    const auto answer =
        send_once(gateway_->admin(), with(without(good, "Content-Type"), "Content-Type", type));
    EXPECT_TRUE(is_problem(answer, 415, "invalid_request")) << type;
  }
  EXPECT_EQ(send_once(gateway_->admin(), without(good, "Content-Type")).status, 415);
  const auto twice = with(good, "Content-Type", "application/json");
  EXPECT_EQ(send_once(gateway_->admin(), twice).status, 400);
  auto put = good;
  put.method = "PUT";
  const auto not_allowed = send_once(gateway_->admin(), put);
  EXPECT_EQ(not_allowed.status, 405);
  EXPECT_EQ(not_allowed.get("Allow"), "POST");
  EXPECT_EQ(post("/v1/keys", "{}").status, 405);
  EXPECT_EQ(post(path(lost, "forget"), "{}").status, 404);
  const auto named = with(without(good, "Idem-Operator"), "Idem-Operator", "a b");
  EXPECT_EQ(send_once(gateway_->admin(), named).status, 400);
  auto large = good;
  large.body.append(3UL * 1024 * 1024, ' ');
  EXPECT_TRUE(is_problem(send_once(gateway_->admin(), large), 413, "body_too_large"));
  EXPECT_EQ(read("/v1/keys/" + lost["ref"].string)["state"].string, "unknown");
  const auto with_charset =
      with(without(good, "Content-Type"), "Content-Type", "Application/JSON ; charset=utf-8");
  EXPECT_EQ(send_once(gateway_->admin(), with_charset).status, 200);
}

class StripeOrders : public AdminOrders {
 protected:
  std::vector<std::string> flags() const override { return {"--preset", "stripe"}; }
};

TEST_F(StripeOrders, V36_a_stored_server_error_is_released_with_a_reason_and_the_retry_runs) {
  const auto first = ask(charge("k", "refuse=500"));
  EXPECT_EQ(first.status, 500);
  EXPECT_EQ(first.get("Idempotency-Outcome"), "stored");
  EXPECT_TRUE(replays(first, ask(charge("k"))));
  const Json record = only("completed");
  const auto released = post(path(record, "release"), releasing(record, "deployed the fix"));
  ASSERT_EQ(released.status, 200) << released.raw;
  EXPECT_EQ(json_text(released.body, "state"), "failed_retryable");
  const auto retry = ask(charge("k"));
  EXPECT_EQ(retry.status, 201);
  EXPECT_FALSE(retry.get("Idempotent-Replayed"));
  EXPECT_EQ(effects("k"), 1);
  EXPECT_TRUE(replays(retry, ask(charge("k"))));
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  const Json shown = read("/v1/keys/" + record["ref"].string);
  ASSERT_EQ(shown["evidence"].items.size(), 1U) << "the audit outlives the process";
  EXPECT_EQ(shown["evidence"].items[0]["reason"].string, "deployed the fix");
  EXPECT_EQ(shown["evidence"].items[0]["source"].string, "operator:grace");
  const auto again = post(path(record, "release"), releasing(shown, "and now the 201"));
  EXPECT_TRUE(is_problem(again, 409, "state_refused")) << "only a stored 5xx";
  EXPECT_TRUE(replays(retry, ask(charge("k"))));
}

TEST_F(StripeOrders, S19_two_operators_releasing_the_same_failure_let_one_retry_run) {
  ask(charge("k", "refuse=500"));
  const Json seen = only("completed");
  const auto order = releasing(seen, "nothing of it at the provider");
  ASSERT_EQ(post(path(seen, "release"), order).status, 200);
  EXPECT_EQ(ask(charge("k", "refuse=500")).status, 500);
  const Json now = only("completed");
  EXPECT_GT(now["fence"].integer, seen["fence"].integer);
  const auto second = post(path(seen, "release"), order);
  EXPECT_TRUE(is_problem(second, 409, "state_refused"));
  EXPECT_NE(second.body.find(fmt::format("fence {}", now["fence"].integer)), std::string::npos)
      << second.body;
  EXPECT_EQ(ask(charge("k")).get("Idempotent-Replayed"), "true");
}

TEST_F(AdminOrders, S19_a_record_completed_by_evidence_is_not_released) {
  ask(charge("k", "drop-after"));
  const Json lost = only("unknown");
  const auto ran = resolving(lost, "completed", R"(,"response":{"status":500})");
  ASSERT_EQ(post(path(lost, "resolve"), ran).status, 200);
  const auto answer = post(path(lost, "release"), releasing(lost, "clean up"));
  EXPECT_TRUE(is_problem(answer, 409, "state_refused"));
  EXPECT_NE(answer.body.find("Evidence that the operation ran completed this record"),
            std::string::npos)
      << answer.body;
  EXPECT_EQ(ask(charge("k")).status, 500);
  EXPECT_EQ(effects("k"), 1);
}

/// The same by a clock that the test moves.
class TimedOrders : public AdminOrders {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem-crash");
    provider_ = std::make_unique<Provider>();
    auto options = this->options(provider_->address());
    options.flags = {"--lease", "2h", "--evidence-grace", "1h"};
    options.program = "idem-crash";
    options.environment = {clock_.environment()};
    gateway_ = std::make_unique<Gateway>(std::move(options));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
    clock_.move_also_under(dir_.path() / "idem.db");
  }
  Response nothing_there(const Json& record, std::string_view observed_at) {
    const auto when = fmt::format(R"(,"observed_at":"{}")", observed_at);
    return post(path(record, "resolve"), resolving(record, "failed_retryable", when));
  }
  /// When the one of this key was made.
  std::string moment(std::string_view key) {
    ask(charge(key));
    const auto found = read(fmt::format("/v1/keys?scope=acme&operation=POST+/charges&key={}", key));
    return found["keys"].items.at(0)["created_at"].string;
  }

  MovedClock clock_;
};

TEST_F(TimedOrders, S19_an_observation_in_the_future_proves_nothing) {
  ask(charge("k", "drop-before"));
  const Json lost = only("unknown");
  clock_.pass(4L * 3600);
  for (const auto* when : {"2999-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"}) {
    const auto answer = nothing_there(lost, when);
    EXPECT_TRUE(is_problem(answer, 400, "invalid_request")) << when;
    EXPECT_TRUE(json_text(answer.body, "detail").starts_with("/observed_at: lies in the future"))
        << answer.body;
  }
  EXPECT_TRUE(is_problem(ask(charge("k")), 409, "outcome_unknown"));
  EXPECT_EQ(nothing_there(lost, moment("later")).status, 200) << "seen after lease and grace";
}

TEST_F(TimedOrders, S15_S19_a_moment_by_another_clock_than_the_stores_is_not_compared) {
  ask(charge("k", "drop-before"));
  const Json lost = only("unknown");
  for (const std::int64_t step : {3600, -7200}) {
    clock_.step_wall(step);
    const auto answer = nothing_there(lost, lost["created_at"].string);
    EXPECT_TRUE(is_problem(answer, 400, "invalid_request")) << step;
    EXPECT_TRUE(json_text(answer.body, "detail").starts_with("/observed_at: the store's clock"))
        << answer.body;
  }
  EXPECT_TRUE(is_problem(ask(charge("k")), 409, "outcome_unknown"));
  clock_.pass(4L * 3600);
  EXPECT_EQ(post(path(lost, "resolve"), resolving(lost, "failed_retryable")).status, 200)
      << "an observation now is of now by any clock";
}

TEST_F(AdminOrders, S19_an_attempt_that_a_start_ends_is_a_decision_in_the_log) {
  auto client = std::thread([&] { ask(charge("k", "hold=h")); });
  ASSERT_TRUE(provider_->wait_held("h", 1));
  gateway_->kill();
  provider_->release("h");
  client.join();
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  ASSERT_TRUE(gateway_->process().wait_for_line("lease_expired"));
  const Json shown = read("/v1/keys/" + only("unknown")["ref"].string);
  ASSERT_EQ(shown["evidence"].items.size(), 1U);
  // The file's only process is dead, so its lease need not run out.
  EXPECT_EQ(shown["evidence"].items[0]["source"].string, "start");
  EXPECT_EQ(shown["evidence"].items[0]["evidence"].string, "process_ended");
  EXPECT_EQ(shown["evidence"].items[0]["fence"].integer, shown["fence"].integer);
  EXPECT_EQ(metric("idem_zombie_keys_total"), 1);
  EXPECT_EQ(effects("k"), 1);
}

}  // namespace
}  // namespace idem::test
