#include <gtest/gtest.h>

#include <chrono>

#include "support/back_off.hpp"
#include "support/live.hpp"

// A provider that knows its keys for a while, as real ones do: what a service relies on when it
// asks again, and what it must not rely on when it asks too late.

namespace idem::test {
namespace {

class TheProviderThatDeduplicates : public testing::Test {
 protected:
  explicit TheProviderThatDeduplicates(const std::string& window = "5m")
      : provider_("127.0.0.1:0", {"--deduplicate", window}) {}

  Response ask(std::string_view key, std::string_view faults = {},
               std::string_view body = R"({"amount":1250,"currency":"EUR"})") const {
    return send_once(provider_.address(), charge(key, faults, body));
  }

  const Provider provider_;
};

TEST_F(TheProviderThatDeduplicates, answers_a_key_as_it_did_first) {
  const auto first = ask("k");
  const auto second = ask("k");
  EXPECT_EQ(first.status, 201);
  EXPECT_FALSE(first.get("Idempotent-Replayed"));
  EXPECT_EQ(second.status, 201);
  EXPECT_EQ(second.body, first.body);
  EXPECT_EQ(second.get("X-Provider-Effect"), first.get("X-Provider-Effect"));
  EXPECT_EQ(second.get("Idempotent-Replayed"), "true");
  EXPECT_EQ(provider_.effects("k"), 1);
  EXPECT_EQ(provider_.of_key("k").arrivals, 2);
}

TEST_F(TheProviderThatDeduplicates, knows_a_charge_whose_answer_was_lost) {
  for (const auto* fault : {"drop-after", "500-after", "truncate", "garbage"}) {
    EXPECT_NE(ask(fault, fault).status, 201) << fault;
    const auto again = ask(fault);
    EXPECT_EQ(again.status, 201) << fault;
    EXPECT_EQ(again.get("Idempotent-Replayed"), "true") << fault;
    EXPECT_EQ(provider_.effects(fault), 1) << fault;
    EXPECT_EQ(ask(fault, "drop-after").trouble, "closed") << "a replay can be lost as well";
    EXPECT_EQ(ask(fault, "refuse=503").status, 503);
  }
}

TEST_F(TheProviderThatDeduplicates, charges_only_where_it_had_not_charged) {
  for (const auto* fault : {"drop-before", "500-before", "refuse=429"}) {
    EXPECT_NE(ask(fault, fault).status, 201) << fault;
    const auto again = ask(fault);
    EXPECT_EQ(again.status, 201) << fault;
    EXPECT_FALSE(again.get("Idempotent-Replayed")) << fault;
    EXPECT_EQ(provider_.effects(fault), 1) << fault;
  }
}

TEST_F(TheProviderThatDeduplicates, charges_each_request_that_has_no_key) {
  const auto request = without(charge("k"), "Idempotency-Key");
  EXPECT_FALSE(send_once(provider_.address(), request).get("Idempotent-Replayed"));
  EXPECT_FALSE(send_once(provider_.address(), request).get("Idempotent-Replayed"));
  EXPECT_EQ(provider_.ledger().effects, 2);
}

TEST_F(TheProviderThatDeduplicates, refuses_a_key_that_is_under_way) {
  for (const std::string fault : {"gate-before=h", "hold=h"}) {
    Connection first(provider_.address());
    first.send(charge(fault, fault));
    ASSERT_TRUE(provider_.wait_held("h", 1));
    EXPECT_EQ(ask(fault).status, 409);
    EXPECT_EQ(ask(fault, {}, "{}").status, 422);
    EXPECT_EQ(provider_.effects(fault), fault == "hold=h" ? 1 : 0);
    provider_.release("h");
    const auto answer = first.read_response();
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(ask(fault).body, answer.body);
    EXPECT_EQ(provider_.effects(fault), 1);
    EXPECT_EQ(provider_.of_key(fault).arrivals, 4);
  }
}

TEST_F(TheProviderThatDeduplicates, refuses_a_key_of_another_request) {
  EXPECT_EQ(ask("k").status, 201);
  EXPECT_EQ(ask("k", {}, R"({"amount":9})").status, 422);
  auto elsewhere = charge("k");
  elsewhere.target = "/refunds";
  EXPECT_EQ(send_once(provider_.address(), elsewhere).status, 422);
  EXPECT_EQ(provider_.effects("k"), 1);
}

TEST_F(TheProviderThatDeduplicates, keeps_a_refusal_that_it_decided) {
  const auto* declined = R"({"amount":5,"source":"tok_declined"})";
  EXPECT_EQ(ask("member", {}, declined).status, 402);
  const auto again = ask("member", {}, declined);
  EXPECT_EQ(again.status, 402);
  EXPECT_EQ(again.body, R"({"error":"card_declined"})");
  EXPECT_EQ(again.get("Idempotent-Replayed"), "true");
  EXPECT_EQ(ask("fault", "refuse=402").status, 402);
  EXPECT_EQ(ask("fault").status, 402);
  EXPECT_EQ(provider_.ledger().effects, 0);
}

TEST_F(TheProviderThatDeduplicates, forgets_keys_with_its_ledger) {
  ask("k");
  send_once(provider_.address(), {.method = "DELETE", .target = "/ledger"});
  EXPECT_FALSE(ask("k").get("Idempotent-Replayed"));
  EXPECT_EQ(provider_.effects("k"), 1);
}

class TheProviderWithAShortWindow : public TheProviderThatDeduplicates {
 protected:
  TheProviderWithAShortWindow() : TheProviderThatDeduplicates("1ms") {}
};

TEST_F(TheProviderWithAShortWindow, charges_again_once_the_window_is_over) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  ask("k");
  while (provider_.effects("k") < 2 && std::chrono::steady_clock::now() < give_up) {
    back_off();
    EXPECT_EQ(ask("k").status, 201);
  }
  EXPECT_EQ(provider_.effects("k"), 2);
}

TEST_F(TheProviderWithAShortWindow, never_charges_a_key_that_is_still_under_way) {
  const auto begin = std::chrono::steady_clock::now();
  Connection first(provider_.address());
  first.send(charge("k", "hold=h"));
  ASSERT_TRUE(provider_.wait_held("h", 1));
  do {
    EXPECT_EQ(ask("k").status, 409);
  } while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(5));
  provider_.release("h");
  EXPECT_EQ(first.read_response().status, 201);
  EXPECT_EQ(provider_.effects("k"), 1);
}

TEST(TheProvidersWindow, is_a_duration_and_off_by_default) {
  for (const auto* window : {"0", "0s", "500ms", "30s", "5m", "24h"}) {
    const Provider provider("127.0.0.1:0", {"--deduplicate", window});
    ASSERT_TRUE(provider.running()) << window;
    send_once(provider.address(), charge("k"));
    send_once(provider.address(), charge("k"));
    EXPECT_EQ(provider.effects("k"), window[0] == '0' ? 2 : 1) << window;
  }
  for (const auto* window : {"", "5", "5d", "-5s", "5 s", "s", "9000000000h"}) {
    Process process({.program = built_program("provider"),
                     .arguments = {"--listen", "127.0.0.1:0", "--deduplicate", window}});
    EXPECT_EQ(process.exit_code(), 2) << window;
  }
}

}  // namespace
}  // namespace idem::test
