#include "core/exchange/error_form.hpp"

#include "core/exchange/answers.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/json.hpp"

namespace idem {
namespace {

std::string field(const WireAnswer& answer, std::string_view name) {
  std::string value;
  for (const Field& one : answer.headers) {
    if (equal_names(one.name, name)) value += (value.empty() ? "" : ", ") + one.value;
  }
  return value;
}

TEST(ErrorForm, S13_each_problem_is_an_error_to_stripes_clients) {
  for (const ProblemKind& kind : all_kinds()) {
    SCOPED_TRACE(kind.name);
    const WireAnswer ours =
        to_answer({.code = kind.code, .detail = "why", .retry_after = Millis(1500)});
    const WireAnswer answer = in_stripe_form(ours, false);
    const auto body = test::parse_json(answer.body).value_or(test::Json());
    EXPECT_EQ(body.members.size(), 1U);
    const auto& error = body["error"];
    EXPECT_EQ(error["message"].string, "why");
    EXPECT_EQ(error["idem_code"].string, kind.name);
    EXPECT_EQ(error["doc_url"].string, "/.idem/problems/" + std::string(kind.name));
    EXPECT_EQ(error["retry"].string, name_of(kind.retry));
    EXPECT_FALSE(error["code"].string.empty());
    EXPECT_EQ(field(answer, "Content-Type"), "application/json");
    EXPECT_EQ(field(answer, "Cache-Control"), "no-store");
    EXPECT_EQ(field(answer, "Retry-After"), "2");
    const bool advises = kind.retry == RetryAdvice::same_key || kind.retry == RetryAdvice::later;
    EXPECT_EQ(field(answer, "Stripe-Should-Retry"), advises ? "true" : "false");
    // By status first: only of these two does the type choose the class.
    const bool is_bad = error["type"].string == "invalid_request_error";
    const bool is_of_the_admin_api =
        kind.code == ProblemCode::login_required || kind.code == ProblemCode::role_missing;
    if (is_bad && !is_of_the_admin_api && kind.code != ProblemCode::scope_missing &&
        kind.code != ProblemCode::quota_exceeded && kind.code != ProblemCode::state_refused) {
      EXPECT_TRUE(answer.status == 400 || answer.status == 404) << answer.status;
    }
  }
}

TEST(ErrorForm, S13_a_request_without_a_key_is_repeated_only_where_that_is_safe) {
  const WireAnswer ours = to_answer({.code = ProblemCode::upstream_failed});
  EXPECT_EQ(field(in_stripe_form(ours, false), "Stripe-Should-Retry"), "false");
  EXPECT_EQ(field(in_stripe_form(ours, true), "Stripe-Should-Retry"), "true");
}

TEST(ErrorForm, S13_the_one_answer_of_ours_that_is_stored_is_known_again) {
  const RecordId id{{1, 2, 3}};
  const WireAnswer timed_out = timed_out_answer(id);
  const StoredResponse stored{timed_out.status, timed_out.headers, timed_out.body, true};
  const WireAnswer replay = replay_answer(Replay{stored, {}, {}}, id);
  ASSERT_TRUE(replay.problem);
  const WireAnswer written = in_stripe_form(replay, false);
  EXPECT_EQ(written.status, 408);
  EXPECT_EQ(field(written, "Idempotent-Replayed"), "true");
  EXPECT_EQ(field(written, "Content-Type"), "application/json");
  StoredResponse other = stored;
  other.body += ' ';
  EXPECT_FALSE(replay_answer(Replay{other, {}, {}}, id).problem) << "not ours";
  EXPECT_FALSE(replay_answer(Replay{stored, {}, {}}, RecordId{{4}}).problem) << "another one's";
}

}  // namespace
}  // namespace idem
