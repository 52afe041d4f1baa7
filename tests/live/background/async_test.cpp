#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <mutex>

#include "support/async.hpp"
#include "support/moved_clock.hpp"
#include "support/scripted_live.hpp"

/// Requests that are stored and run later (protocol.md §3, §7, §13).
namespace idem::test {
namespace {

class Async : public Live {
 protected:
  /// One loop, so that a request that was sent before another is also met before it.
  std::vector<std::string> flags() const override { return {"--mode", "async", "--threads", "1"}; }

  /// Another gateway on the same store, with these flags.
  void start_with(std::vector<std::string> flags, std::string upstream = {}) {
    if (gateway_->running()) gateway_->terminate();
    auto options = this->options(upstream.empty() ? provider_->address() : upstream);
    options.flags = std::move(flags);
    gateway_ = std::make_unique<Gateway>(std::move(options));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  Json ended(const Response& accepted) { return state_when_ended(gateway_->address(), accepted); }
  Response lookup(std::string target, std::string_view tenant = "acme") {
    return ask(looking_up(std::move(target), tenant));
  }
  /// A file that may hold a secret.
  std::string secret_file(std::string_view name, std::string_view content) {
    const auto path = dir_.path() / name;
    std::ofstream(path) << content;
    std::filesystem::permissions(path, std::filesystem::perms::owner_read);
    return path.string();
  }
};

TEST_F(Async, S03_S13_accepted_is_stored_run_once_and_replayed) {
  const auto accepted = ask(charge("k"));
  EXPECT_EQ(accepted.status, 202) << accepted.raw;
  EXPECT_TRUE(accepted.get("Retry-After"));
  const auto place = accepted.get("Location").value_or("");
  EXPECT_TRUE(place.starts_with("/.idem/operations/")) << accepted.raw;
  const auto state = ended(accepted);
  EXPECT_EQ(state["state"].string, "completed");
  EXPECT_EQ(state["response_status"].integer, 201);
  const auto replay = ask(charge("k"));
  EXPECT_EQ(replay.status, 201);
  EXPECT_EQ(replay.get("Idempotent-Replayed"), "true");
  EXPECT_TRUE(replays(replay, lookup(state["response"].string)));
  const auto calls = provider_->of_key("k");
  EXPECT_EQ(calls.effects, 1);
  EXPECT_EQ(calls.fences.size(), 1U) << "an attempt in the background is fenced like any other";
}

TEST_F(Async, S07_each_attempt_carries_its_fence_and_token) {
  auto request = charge("k");
  request.target = "/echo?a=1";
  const auto state = ended(ask(with(std::move(request), "Prefer", "return=minimal, wait=0")));
  const auto answer = lookup(state["response"].string);
  for (const auto* name : {"Idem-Operation", "Idem-Fence", "Idem-Attempt"}) {
    EXPECT_EQ(echoed(answer, name).size(), 1U) << name << answer.raw;
  }
  EXPECT_EQ(echoed(answer, "Idempotency-Key"), std::vector<std::string>{"k"});
  EXPECT_EQ(echoed(answer, "Content-Type"), std::vector<std::string>{"application/json"});
  EXPECT_EQ(echoed(answer, "Prefer"), std::vector<std::string>{"return=minimal"})
      << "an applied preference is not passed on";
}

TEST_F(Async, S07_duplicates_get_the_answers_of_the_table) {
  const auto accepted = ask(charge("k", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  const auto again = ask(charge("k", "hold=h"));
  EXPECT_EQ(again.status, 202) << again.raw;
  EXPECT_EQ(again.get("Location"), accepted.get("Location"));
  EXPECT_TRUE(is_problem(ask(charge("k", "hold=h", R"({"amount":1})")), 422, "key_reused"));
  Connection waiter(gateway_->address());
  waiter.send(with(charge("k", "hold=h"), "Prefer", "wait=30"));
  EXPECT_EQ(ask(charge("k", "hold=h")).status, 202) << "by now the waiter has been met, too";
  provider_->release("h");
  const auto final_answer = waiter.read_response();
  EXPECT_EQ(final_answer.status, 201) << final_answer.raw;
  EXPECT_EQ(final_answer.get("Preference-Applied"), "wait=30");
  EXPECT_EQ(provider_->effects("k"), 1);

  const auto lost = ask(charge("lost", "drop-after"));
  EXPECT_EQ(ended(lost)["state"].string, "unknown");
  EXPECT_TRUE(is_problem(ask(charge("lost", "drop-after")), 409, "outcome_unknown"));
  EXPECT_EQ(provider_->effects("lost"), 1);
}

TEST_F(Async, S07_a_record_that_another_mode_made_is_answered_by_the_table) {
  start_with({});
  EXPECT_EQ(ask(charge("released", "refuse=401")).status, 401);
  const auto first = ask(charge("completed"));
  start_with({"--mode", "async"});
  const auto accepted = ask(charge("released", "refuse=401"));
  EXPECT_EQ(accepted.status, 202) << "failed_retryable: accepted";
  EXPECT_TRUE(replays(first, ask(charge("completed"))));

  const auto address = provider_->address();
  provider_.reset();
  const auto pending = ask(charge("pending"));
  EXPECT_EQ(pending.status, 202);
  start_with({}, address);
  const auto final_answer = ask_until_settled(gateway_->address(), charge("pending"));
  EXPECT_EQ(final_answer.status, 202) << final_answer.raw;
  EXPECT_EQ(final_answer.get("Location"), pending.get("Location"));
  start_with({"--mode", "wait"}, address);
  Connection waiter(gateway_->address());
  waiter.send(charge("pending"));
  provider_ = std::make_unique<Provider>(address);
  ASSERT_TRUE(provider_->running());
  const auto woken = waiter.read_response();
  EXPECT_EQ(woken.status, 201) << woken.raw;
  EXPECT_EQ(provider_->effects("pending"), 1);
}

TEST_F(Async, S07_a_client_that_waits_from_the_start_gets_the_answer) {
  const auto answer = ask(with(charge("k"), "Prefer", "wait=30"));
  EXPECT_EQ(answer.status, 201) << answer.raw;
  EXPECT_EQ(provider_->effects("k"), 1);
}

TEST_F(Async, S07_respond_async_only_where_it_is_permitted) {
  start_with({});
  const auto asked = with(charge("a"), "Prefer", "respond-async");
  EXPECT_EQ(ask(asked).status, 201);
  start_with({"--respond-async"});
  EXPECT_EQ(ask(charge("b")).status, 201) << "a request without the preference is served at once";
  const auto accepted = ask(with(charge("c"), "Prefer", "respond-async"));
  EXPECT_EQ(accepted.status, 202) << accepted.raw;
  EXPECT_EQ(accepted.get("Preference-Applied"), "respond-async");
  EXPECT_EQ(ended(accepted)["state"].string, "completed");
  EXPECT_EQ(provider_->effects("c"), 1);
}

TEST_F(Async, S03_an_upstream_that_is_down_is_tried_until_it_is_there) {
  const auto address = provider_->address();
  provider_.reset();
  const auto accepted = ask(charge("k"));
  EXPECT_EQ(accepted.status, 202);
  const auto meanwhile = lookup(*accepted.get("Location"));
  EXPECT_TRUE(meanwhile.get("Retry-After"));
  EXPECT_EQ(ask(charge("k")).status, 202);
  provider_ = std::make_unique<Provider>(address);
  ASSERT_TRUE(provider_->running());
  EXPECT_EQ(ended(accepted)["state"].string, "completed");
  EXPECT_EQ(provider_->effects("k"), 1);
}

TEST_F(Async, S12_a_declared_release_is_tried_again) {
  auto request = charge("k");
  provider_->arm("refuse=429");
  const auto state = ended(ask(request));
  EXPECT_EQ(state["response_status"].integer, 201);
  EXPECT_EQ(provider_->of_key("k").arrivals, 2);
  EXPECT_EQ(provider_->effects("k"), 1);
}

TEST_F(Async, T37_V33_credentials_and_keys_are_not_readable_in_the_store) {
  const auto secret = [&](std::string_view key, std::string_view token = "sent-to-the-echo") {
    auto request = with(charge(key), "Authorization", "Bearer " + std::string(token));
    request.target = "/echo";
    return with(std::move(request), "X-Api-Key", "other-canary-value");
  };
  auto answer = lookup(ended(ask(secret("a-telling-raw-key-1")))["response"].string);
  EXPECT_TRUE(echoed(answer, "Authorization").empty());
  EXPECT_TRUE(echoed(answer, "X-Api-Key").empty());
  EXPECT_TRUE(echoed(answer, "X-Tenant-Id").empty()) << "also whose it is must be asked to be kept";
  const auto file = secret_file("async.secret", std::string(48, 's'));
  start_with({"--mode", "async", "--async-keep-header", "Authorization", "--async-keep-header",
              "X-Tenant-Id", "--async-secret-file", file});
  answer = lookup(ended(ask(secret("a-telling-raw-key-2")))["response"].string);
  EXPECT_EQ(echoed(answer, "Authorization"), std::vector<std::string>{"Bearer sent-to-the-echo"});
  EXPECT_EQ(echoed(answer, "X-Tenant-Id"), std::vector<std::string>{"acme"});
  EXPECT_TRUE(echoed(answer, "X-Api-Key").empty());

  provider_.reset();  // So that it stays in the store.
  auto waiting = secret("a-telling-raw-key-3", "canary-in-the-store");
  waiting.target = "/charges";
  EXPECT_EQ(ask(waiting).status, 202);
  const auto content = store_content(dir_.path() / "idem.db");
  EXPECT_NE(content.find("application/json"), std::string::npos) << "looked in the wrong place";
  EXPECT_EQ(content.find("other-canary-value"), std::string::npos);
  EXPECT_EQ(content.find("a-telling-raw-key-3"), std::string::npos);
  EXPECT_EQ(content.find("canary-in-the-store"), std::string::npos);
}

TEST_F(Async, S09_another_scope_sees_nothing) {
  const auto accepted = ask(charge("k"));
  const auto place = *accepted.get("Location");
  ended(accepted);
  const auto theirs = lookup(place, "other");
  EXPECT_TRUE(is_problem(theirs, 404, "not_found"));
  const auto none = lookup("/.idem/operations/00112233445566778899aabbccddeeff", "other");
  EXPECT_EQ(theirs.body, none.body);
  EXPECT_EQ(lookup("/.idem/operations/no-such-thing", "other").body, none.body);
  EXPECT_TRUE(is_problem(lookup(place + "/response", "other"), 404, "not_found"));
  const auto nobody = ask({.method = "GET", .target = place});
  EXPECT_TRUE(is_problem(nobody, 401, "scope_missing"));
  EXPECT_EQ(provider_->ledger().arrivals, 1) << "nothing of this is forwarded";
}

TEST_F(Async, S07_the_status_resource_waits_and_has_a_head) {
  const auto accepted = ask(charge("k", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  const auto place = *accepted.get("Location");
  const auto now = lookup(place);
  EXPECT_EQ(parse_json(now.body).value_or(Json())["state"].string, "in_progress");
  EXPECT_EQ(lookup(place + "/response").status, 202);
  Connection waiter(gateway_->address());
  waiter.send(with(looking_up(place), "Prefer", "wait=30"));
  EXPECT_EQ(lookup(place).status, 200);
  provider_->release("h");
  const auto final_answer = waiter.read_response();
  EXPECT_EQ(parse_json(final_answer.body).value_or(Json())["state"].string, "completed")
      << final_answer.raw;
  EXPECT_EQ(final_answer.get("Preference-Applied"), "wait=30");
  auto head = looking_up(place);
  head.method = "HEAD";
  Connection connection(gateway_->address());
  connection.send(head);
  const auto only_head = connection.read_response(true);
  EXPECT_EQ(only_head.status, 200);
  EXPECT_TRUE(only_head.body.empty());
  EXPECT_EQ(connection.exchange(looking_up(place)).status, 200) << "nothing was left on the wire";
}

TEST_F(Async, S09_lookups_are_bounded) {
  const auto nothing = looking_up("/.idem/operations/00112233445566778899aabbccddeeff");
  Connection connection(gateway_->address());
  int refused = 0;
  for (int i = 0; i < 100'000 && refused == 0; ++i) {
    const auto answer = connection.exchange(nothing);
    if (answer.status == 404) continue;
    ASSERT_TRUE(is_problem(answer, 429, "quota_exceeded")) << answer.raw;
    EXPECT_TRUE(answer.get("Retry-After"));
    ++refused;
  }
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(ask(charge("k")).status, 202) << "the bound is for looking up only";
  EXPECT_EQ(lookup(nothing.target, "other").status, 404) << "and each scope has its own";
}

TEST_F(Async, V28_pending_past_its_expiry_is_a_stored_timeout_that_the_client_can_read) {
  IDEM_NEED_PROGRAM("idem-crash");
  MovedClock clock;
  const auto address = provider_->address();
  provider_.reset();
  auto options = this->options(address);
  options.store = dir_.path() / "moved.db";
  options.environment = {clock.environment()};
  options.program = "idem-crash";
  gateway_ = std::make_unique<Gateway>(std::move(options));
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  clock.move_also_under(dir_.path() / "moved.db");
  const auto accepted = ask(charge("k"));
  EXPECT_EQ(accepted.status, 202) << accepted.raw;
  clock.pass(24 * 3600 + 1);
  const auto state = ended(accepted);
  EXPECT_EQ(state["state"].string, "completed");
  EXPECT_EQ(state["response_status"].integer, 408);
  provider_ = std::make_unique<Provider>(address);
  ASSERT_TRUE(provider_->running());
  const auto retry = ask(charge("k"));
  EXPECT_TRUE(is_problem(retry, 408, "request_timeout"));
  EXPECT_EQ(retry.get("Idempotent-Replayed"), "true");
  EXPECT_TRUE(replays(retry, lookup(state["response"].string)));
  EXPECT_EQ(provider_->ledger().arrivals, 0) << "a request that timed out is never run";
}

TEST_F(Async, S15_sigterm_finishes_running_requests_and_leaves_the_rest_for_the_next) {
  start_with({"--mode", "async", "--async-tenant-concurrency", "1"});
  const auto first = ask(charge("first", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  const auto second = ask(charge("second"));
  EXPECT_EQ(second.status, 202);
  gateway_->process().signal(SIGTERM);
  ASSERT_TRUE(gateway_->process().wait_for_line("draining"));
  provider_->release("h");
  EXPECT_EQ(gateway_->process().exit_code(), 0);
  EXPECT_EQ(provider_->effects("first"), 1);
  EXPECT_EQ(provider_->effects("second"), 0) << "a place that is free is not taken any more";
  gateway_->restart();
  EXPECT_EQ(ended(first)["response_status"].integer, 201);
  EXPECT_EQ(ended(second)["response_status"].integer, 201);
  EXPECT_EQ(provider_->of_key("first").arrivals, 1);
  EXPECT_EQ(provider_->effects("second"), 1);
}

/// An upstream that keeps the order in which requests came and answers none before it may.
class AsyncTurns : public Scripted {
 protected:
  void begin(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--mode", "async"});
    start(
        [this](UpstreamConnection& connection) {
          while (const auto request = connection.read_request()) {
            {
              const std::lock_guard lock(mutex_);
              order_ += request->body;
            }
            if (!go_on_.wait()) return;
            connection.write_answer();
          }
        },
        std::move(flags));
  }
  Response accept(const std::string& tenant, int number) {
    const auto key = tenant + std::to_string(number);
    return ask(with(without(charge(key, {}, tenant), "X-Tenant-Id"), "X-Tenant-Id", tenant));
  }
  std::string state_of(const Response& accepted, const std::string& tenant) {
    const auto found = ask(looking_up(*accepted.get("Location"), tenant));
    return parse_json(found.body).value_or(Json())["state"].string;
  }
  // A look that its limit refuses is repeated.
  bool is_claimed(const Response& accepted, const std::string& tenant) {
    const auto give_up = std::chrono::steady_clock::now() + patience;
    while (state_of(accepted, tenant) != "in_progress") {
      if (std::chrono::steady_clock::now() > give_up) return false;
    }
    return true;
  }
  std::string order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }

  Gate go_on_;
  std::mutex mutex_;
  std::string order_;
};

// The request due the longest is handed out first, and all of those are one tenant's.
TEST_F(AsyncTurns, S22_T39_claims_go_round_the_tenants) {
  ASSERT_NO_FATAL_FAILURE(begin({"--async-concurrency", "2", "--async-tenant-concurrency", "2"}));
  for (int i = 0; i < 20; ++i) ASSERT_EQ(accept("a", i).status, 202);
  ASSERT_TRUE(upstream_->wait_for_requests(2));
  std::vector<Response> theirs;
  for (int i = 0; i < 3; ++i) theirs.push_back(accept("b", i));
  for (const auto& one : theirs) {
    ASSERT_TRUE(is_claimed(one, "b")) << "nobody has claimed it";
  }
  go_on_.open();
  ASSERT_TRUE(upstream_->wait_for_requests(23));
  const auto seen = order();
  EXPECT_EQ(std::ranges::count(seen, 'b'), 3);
  EXPECT_LT(seen.rfind('b'), 10U) << seen << ": its three are among the next, not after all";
}

TEST_F(Async, S03_a_busy_tenant_does_not_block_another) {
  start_with({"--mode", "async", "--async-tenant-concurrency", "1"});
  ASSERT_EQ(ask(charge("held", "hold=h")).status, 202);
  ASSERT_TRUE(provider_->wait_held("h", 1));
  std::vector<Response> queued;
  for (int i = 0; i < 20; ++i) queued.push_back(ask(charge("queued-" + std::to_string(i))));
  auto other = charge("other");
  other.fields.front().value = "other";
  const auto answer = ask(with(std::move(other), "Prefer", "wait=30"));
  EXPECT_EQ(answer.status, 201) << answer.raw;
  EXPECT_EQ(provider_->ledger().arrivals, 2) << "the held one's tenant has no second place";
  provider_->release("h");
  for (const auto& accepted : queued) EXPECT_EQ(ended(accepted)["response_status"].integer, 201);
  EXPECT_EQ(provider_->ledger().effects, 22);
}

class AsyncStreams : public Scripted {};

// The outcome is settled at the stream's head. What is read behind it occupies nobody's place.
TEST_F(AsyncStreams, S22_T25_an_answer_without_an_end_blocks_no_other_request) {
  Gate end;
  ASSERT_NO_FATAL_FAILURE(start(
      [&](UpstreamConnection& connection) {
        while (const auto request = connection.read_request()) {
          if (request->body != "stream") {
            connection.write_answer();
            continue;
          }
          connection.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n");
          end.wait();
          return;
        }
      },
      {"--mode", "async", "--async-concurrency", "1", "--async-tenant-concurrency", "1"}));
  const auto ended = [&](const Response& accepted) {
    return state_when_ended(gateway_->address(), accepted);
  };
  for (const auto* key : {"s1", "s2", "s3"}) {
    EXPECT_EQ(ended(ask(charge(key, {}, "stream")))["state"].string, "completed") << key;
  }
  EXPECT_EQ(ended(ask(charge("k")))["response_status"].integer, 200);
  EXPECT_EQ(upstream_->requests(), 4);
  end.open();
  EXPECT_EQ(gateway_->terminate(), 0);
}

TEST_F(Async, S13_an_answer_too_large_to_store_is_reported_as_such) {
  start_with({"--mode", "async", "--response-body-max", "1KiB"});
  const auto state = ended(ask(charge("k", "size=5000")));
  EXPECT_EQ(state["response_status"].integer, 201);
  EXPECT_TRUE(is_problem(lookup(state["response"].string), 409, "response_not_stored"));
  EXPECT_EQ(provider_->effects("k"), 1);
}

TEST_F(Async, S03_a_reload_keeps_accepted_requests) {
  auto body = std::string(200'000, 'x');
  body.replace(0, 5, std::string("a\0b\r\n", 5));
  auto request = charge("k", "hold=h", body);
  const auto accepted = ask(request);
  ASSERT_TRUE(provider_->wait_held("h", 1));
  gateway_->process().signal(SIGHUP);
  provider_->release("h");
  EXPECT_EQ(ended(accepted)["response_status"].integer, 201);
  EXPECT_EQ(ask(request).get("Idempotent-Replayed"), "true");
}

}  // namespace
}  // namespace idem::test
