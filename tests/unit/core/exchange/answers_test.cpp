#include "core/exchange/answers.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace idem::test {
namespace {

std::string date_of(std::int64_t seconds, std::int64_t millis = 0) {
  return imf_fixdate(StoreTime(Millis(seconds * 1000 + millis)));
}

// RFC 9110 §5.6.7, whose example is the first.
TEST(Answers, S14_the_trace_of_the_run_is_stored_beside_the_answer_and_never_sent) {
  const std::string trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const WireAnswer upstreams{201, {{"A", "1"}, {"Idem-Trace", "forged"}}, {}};
  for (const bool keeps_body : {true, false}) {
    const StoredResponse stored = stored_head(upstreams, keeps_body, {}, trace);
    EXPECT_EQ(stored.headers, (std::vector<Field>{{"A", "1"}, {"Idem-Trace", trace}}));
    const WireAnswer replay = replay_answer(Replay{stored, {}, {}}, {});
    EXPECT_EQ(replay.ran_in, trace);
    for (const Field& field : replay.headers) EXPECT_NE(field.name, "Idem-Trace");
  }
  const StoredResponse untraced = stored_head(upstreams, true);
  EXPECT_EQ(untraced.headers, (std::vector<Field>{{"A", "1"}}));
  EXPECT_EQ(replay_answer(Replay{untraced, {}, {}}, {}).ran_in, "");
}

TEST(Answers, S14_what_lies_beside_an_answer_is_taken_out_of_its_replay) {
  StoredResponse stored = stored_head({201, {{"A", "1"}, {"Idem-Rpc", "forged"}}, {}}, true);
  EXPECT_FALSE(replay_answer(Replay{stored, {}, {}}, {}).answers_rpc);
  stored.headers.push_back({std::string(rpc_field), "id"});
  const WireAnswer replay = replay_answer(Replay{stored, {}, {}}, {});
  EXPECT_TRUE(replay.answers_rpc);
  for (const Field& field : replay.headers) EXPECT_FALSE(lies_beside(field.name));
  stored.body_stored = false;
  const WireAnswer not_stored = replay_answer(Replay{stored, {}, {}}, {});
  EXPECT_FALSE(not_stored.answers_rpc) << "it is no answer of the upstream";
  for (const Field& field : not_stored.headers) EXPECT_FALSE(lies_beside(field.name));
}

TEST(Answers, a_date_is_an_imf_fixdate) {
  EXPECT_EQ(date_of(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date_of(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(date_of(951782399), "Mon, 28 Feb 2000 23:59:59 GMT");
  EXPECT_EQ(date_of(951782400), "Tue, 29 Feb 2000 00:00:00 GMT");
  EXPECT_EQ(date_of(253402300799, 999), "Fri, 31 Dec 9999 23:59:59 GMT");
}

std::vector<std::string> dates_of(const WireAnswer& answer) {
  std::vector<std::string> dates;
  for (const auto& field : answer.headers) {
    if (field.name == "Date" || field.name == "date") dates.push_back(field.value);
  }
  return dates;
}

TEST(Answers, S17_an_answer_stored_without_a_date_is_dated_alike_in_every_replay) {
  Replay replay;
  replay.response = {.status = 201, .headers = {{"Location", "/p/1"}}, .body = "paid"};
  replay.completed_at = StoreTime(std::chrono::seconds(784111777));
  const std::vector<std::string> dated{"Sun, 06 Nov 1994 08:49:37 GMT"};
  EXPECT_EQ(dates_of(replay_answer(replay, {})), dated);
  replay.response.headers.push_back({"date", "Thu, 01 Jan 1970 00:00:00 GMT"});
  EXPECT_EQ(dates_of(replay_answer(replay, {})).front(), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(dates_of(replay_answer(replay, {})).size(), 1U);
}

}  // namespace
}  // namespace idem::test
