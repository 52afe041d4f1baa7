#include <gtest/gtest.h>

#include <string>

#include "support/live.hpp"

namespace idem::test {
namespace {

using Replay = Live;

TEST_F(Replay, S14_gives_the_first_answer_byte_for_byte) {
  const auto first = ask(charge("k"));
  ASSERT_EQ(first.status, 201) << first.raw;
  EXPECT_EQ(first.get("Idempotency-Outcome"), "stored");
  EXPECT_FALSE(first.get("Idempotent-Replayed"));
  EXPECT_TRUE(replays(first, ask(charge("k"))));
  EXPECT_TRUE(replays(first, ask(charge("k"))));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Replay, works_on_one_kept_connection) {
  Connection connection(gateway_->address());
  const auto first = connection.exchange(charge("k"));
  EXPECT_TRUE(replays(first, connection.exchange(charge("k"))));
  EXPECT_TRUE(replays(first, connection.exchange(charge("k"))));
}

TEST_F(Replay, survives_a_kill) {
  const auto first = ask(charge("k"));
  ASSERT_EQ(first.status, 201);
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  EXPECT_TRUE(replays(first, ask(charge("k"))));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Replay, T05_T67_keeps_the_original_status_of_refusals_too) {
  for (const int status : {200, 202, 203, 303, 400, 402, 404, 405, 409, 410, 412, 422, 451}) {
    const auto key = "status-" + std::to_string(status);
    const auto faults = "status=" + std::to_string(status);
    const auto first = ask(charge(key, faults));
    EXPECT_EQ(first.status, status);
    EXPECT_EQ(first.get("Idempotency-Outcome"), "stored");
    EXPECT_TRUE(replays(first, ask(charge(key))));
    EXPECT_EQ(effects(key), 1);
  }
}

TEST_F(Replay, T26_regenerates_content_length_of_a_chunked_answer) {
  const auto first = ask(charge("k", "chunked"));
  ASSERT_EQ(first.status, 201);
  const auto again = ask(charge("k"));
  EXPECT_TRUE(replays(first, again));
  EXPECT_EQ(again.get("Content-Length"), std::to_string(first.body.size()));
  EXPECT_FALSE(again.get("Transfer-Encoding"));
}

TEST_F(Replay, T28_empty_bodies_and_no_content) {
  const auto empty = ask(charge("empty", "size=0"));
  EXPECT_EQ(empty.status, 201);
  EXPECT_EQ(empty.body, "");
  EXPECT_TRUE(replays(empty, ask(charge("empty"))));
  const auto none = ask(charge("none", "status=204"));
  EXPECT_EQ(none.status, 204);
  const auto again = ask(charge("none"));
  EXPECT_TRUE(replays(none, again));
  EXPECT_FALSE(again.get("Content-Length"));
  EXPECT_FALSE(again.get("Transfer-Encoding"));
}

TEST_F(Replay, T29_keeps_location_and_e_tag) {
  const auto first = ask(charge("k", "status=303,header=ETag:\"v1\",header=X-Request-Id:r-1"));
  const auto again = ask(charge("k"));
  EXPECT_TRUE(replays(first, again));
  EXPECT_EQ(again.get("ETag"), "\"v1\"");
  EXPECT_TRUE(again.get("Location"));
  EXPECT_EQ(again.get("Date"), first.get("Date"));
}

TEST_F(Replay, T32_V35_cookies_and_credentials_reach_only_the_first_caller) {
  const auto first = ask(charge("k",
                                "header=Set-Cookie:session=secret,header=WWW-Authenticate:Basic,"
                                "header=Authentication-Info:nextnonce=x,header=Alt-Svc:clear,"
                                "header=Clear-Site-Data:\"cookies\",header=X-Kept:yes"));
  EXPECT_EQ(first.get("Set-Cookie"), "session=secret");
  const auto again = ask(charge("k"));
  EXPECT_TRUE(replays(first, again));
  for (const auto* name :
       {"Set-Cookie", "WWW-Authenticate", "Authentication-Info", "Alt-Svc", "Clear-Site-Data"}) {
    EXPECT_FALSE(again.get(name)) << name;
  }
  EXPECT_EQ(again.get("X-Kept"), "yes");
}

/// An operator who wants cookies in replays, and no other withheld field.
class ReplayFields : public Live {
 protected:
  std::vector<std::string> flags() const override {
    return {"--replay-field", "set-cookie", "--replay-field", "Alt-Svc"};
  }
};

TEST_F(ReplayFields, P33_an_operator_may_have_withheld_fields_replayed) {
  const std::string faults =
      "header=Set-Cookie:a=1,header=Set-Cookie:b=2,header=Alt-Svc:clear,"
      "header=WWW-Authenticate:Basic,header=Connection:X-Hop,header=X-Hop:1";
  const auto first = ask(charge("k", faults));
  const auto again = ask(charge("k", faults));
  EXPECT_TRUE(replays(first, again));
  EXPECT_EQ(again.count("Set-Cookie"), first.count("Set-Cookie"));
  EXPECT_EQ(again.get("Set-Cookie"), "a=1");
  EXPECT_EQ(again.get("Alt-Svc"), "clear");
  EXPECT_FALSE(again.get("WWW-Authenticate"));
  EXPECT_FALSE(again.get("X-Hop"));
}

TEST_F(ReplayFields, P33_framing_and_our_own_fields_cannot_be_allowed) {
  for (const auto* name : {"Connection", "transfer-encoding", "Content-Length", "Idem-Fence",
                           "Proxy-Authenticate", "Idempotent-Replayed", "no name"}) {
    auto options = this->options(provider_->address());
    options.store = dir_.path() / "second.db";
    options.flags = {"--replay-field", name};
    Gateway second(options);
    EXPECT_EQ(second.process().exit_code(), 2) << name;
    EXPECT_NE(second.process().output().find("--replay-field"), std::string::npos);
  }
}

TEST_F(Replay, P14_hop_by_hop_fields_of_the_upstream_stop_here) {
  const std::string faults =
      "header=Connection:X-Hop,header=X-Hop:1,header=Keep-Alive:timeout=5,header=X-End:2";
  const auto first = ask(charge("k", faults));
  const auto again = ask(charge("k", faults));
  for (const auto& answer : {first, again}) {
    EXPECT_FALSE(answer.get("X-Hop"));
    EXPECT_EQ(answer.get("X-End"), "2");
    EXPECT_NE(answer.get("Keep-Alive"), "timeout=5");
  }
}

TEST_F(Replay, P18_interim_answers_are_forwarded_and_not_replayed) {
  const auto first = ask(charge("k", "interim"));
  EXPECT_EQ(first.interim, std::vector<int>{103});
  const auto again = ask(charge("k", "interim"));
  EXPECT_TRUE(replays(first, again));
  EXPECT_TRUE(again.interim.empty());
}

TEST_F(Replay, T50_V30_states_the_expiry_and_does_not_move_it) {
  ask(charge("k"));
  const auto expiry = ask(charge("k")).get("Idempotency-Expires");
  ASSERT_TRUE(expiry);
  EXPECT_EQ(expiry->size(), std::string("Sun, 06 Nov 1994 08:49:37 GMT").size());
  EXPECT_TRUE(expiry->ends_with(" GMT"));
  EXPECT_EQ(ask(charge("k")).get("Idempotency-Expires"), expiry);
}

TEST_F(Replay, T24_an_answer_too_large_to_keep_is_given_once_and_never_run_again) {
  const auto first = ask(charge("k", "size=2000000"));
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(first.body.size(), 2'000'000U);
  const auto again = ask(charge("k"));
  EXPECT_TRUE(is_problem(again, 409, "response_not_stored"));
  EXPECT_EQ(json_text(again.body, "retry"), "never");
  EXPECT_EQ(again.get("Location"), first.get("Location"));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Replay, a_body_just_below_the_limit_is_stored) {
  const auto first = ask(charge("k", "size=1048576"));
  EXPECT_EQ(first.body.size(), 1'048'576U);
  EXPECT_TRUE(replays(first, ask(charge("k"))));
}

TEST_F(Replay, lists_our_fields_for_browsers_where_the_upstream_exposes_some) {
  const auto first = ask(charge("k", "header=Access-Control-Expose-Headers:X-Provider-Effect"));
  const auto exposed = first.get("Access-Control-Expose-Headers").value_or("");
  EXPECT_NE(exposed.find("Idempotency-Outcome"), std::string::npos) << exposed;
  EXPECT_NE(exposed.find("X-Provider-Effect"), std::string::npos) << exposed;
  EXPECT_FALSE(ask(charge("other")).get("Access-Control-Expose-Headers"));
}

TEST_F(Replay, V06_one_key_on_two_operations_is_two_records) {
  auto refund = charge("k");
  refund.target = "/refunds";
  const auto charged = ask(charge("k"));
  const auto refunded = ask(refund);
  EXPECT_NE(charged.body, refunded.body);
  EXPECT_TRUE(replays(charged, ask(charge("k"))));
  EXPECT_TRUE(replays(refunded, ask(refund)));
  EXPECT_EQ(effects("k"), 2);
}

}  // namespace
}  // namespace idem::test
