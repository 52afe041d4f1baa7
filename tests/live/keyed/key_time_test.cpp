#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>

#include "support/json.hpp"
#include "support/live.hpp"
#include "support/moved_clock.hpp"

/// Keys that say when they were made, and requests that say when they were sent first.
namespace idem::test {
namespace {

constexpr std::int64_t hour = 3600;
constexpr std::int64_t day = 24 * hour;

/// This machine's clock, which the gateway's starts as. All that is asked of it is the hour.
std::int64_t seconds_from_now(std::int64_t seconds) {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
             .count() +
         seconds;
}

std::string uuid_made(std::int64_t seconds) {
  const auto millis = fmt::format("{:012x}", seconds_from_now(seconds) * 1000);
  return fmt::format("{}-{}-7cc3-98c4-dc0c0c07398f", millis.substr(0, 8), millis.substr(8));
}

std::string ulid_made(std::int64_t seconds) {
  static constexpr std::string_view alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  auto millis = static_cast<std::uint64_t>(seconds_from_now(seconds) * 1000);
  std::string time(10, '0');
  for (std::size_t at = time.size(); at-- > 0; millis /= 32) time[at] = alphabet[millis % 32];
  return time + "TSV4RRFFQ69G5FAV";
}

std::string date_of(std::int64_t seconds) {
  const std::time_t moment = seconds_from_now(seconds);
  std::tm parts{};
  gmtime_r(&moment, &parts);
  char text[64];
  const auto size = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text, size};
}

Request sent_first(std::string_view key, const std::string& date) {
  return with(charge(key), "Repeatability-First-Sent", date);
}

class KeyTime : public Live {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem-crash");
    provider_ = std::make_unique<Provider>();
  }

  void start(std::vector<std::string> flags) {
    // One store, one process; and one that is killed may leave a cache that believes for two
    // seconds more that what it answered still runs.
    if (gateway_) {
      EXPECT_EQ(gateway_->terminate(), 0);
    }
    gateway_.reset();
    auto options = this->options(provider_->address());
    options.flags = std::move(flags);
    options.program = "idem-crash";
    options.environment = {clock_.environment()};
    gateway_ = std::make_unique<Gateway>(std::move(options));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
    clock_.move_also_under(dir_.path() / "idem.db");
  }
  int arrivals() const { return provider_->ledger().arrivals; }

  MovedClock clock_;
};

TEST_F(KeyTime, V25_a_new_key_older_than_the_retention_is_refused_where_it_carries_its_time) {
  ASSERT_NO_FATAL_FAILURE(start({"--key-time", "checked"}));
  for (const auto& old : {uuid_made(-day - hour), ulid_made(-day - hour)}) {
    const auto refused = ask(charge(old));
    EXPECT_TRUE(is_problem(refused, 410, "key_expired")) << refused.raw;
    EXPECT_EQ(json_text(refused.body, "retry"), "never");
    EXPECT_EQ(refused.body.find(old), std::string::npos);
  }
  for (const auto& ahead : {uuid_made(hour), ulid_made(hour)}) {
    EXPECT_TRUE(is_problem(ask(charge(ahead)), 400, "key_invalid"));
  }
  EXPECT_EQ(arrivals(), 0);
  int ran = 0;
  for (const auto& fine :
       {uuid_made(0), uuid_made(-day + hour), uuid_made(60), ulid_made(0), ulid_made(-day + hour),
        std::string("k"), std::string("919108f7-52d1-4320-9bac-f847db4148a8")}) {
    EXPECT_EQ(ask(charge(fine)).status, 201) << fine;
    EXPECT_EQ(arrivals(), ++ran);
  }
}

TEST_F(KeyTime, V25_where_the_time_is_required_a_key_without_one_is_refused) {
  ASSERT_NO_FATAL_FAILURE(start({}));
  const auto before = ask(charge("k"));
  ASSERT_EQ(before.status, 201);
  ASSERT_NO_FATAL_FAILURE(start({"--key-time", "required"}));
  EXPECT_TRUE(is_problem(ask(charge("l")), 400, "key_invalid"));
  EXPECT_TRUE(is_problem(ask(charge(uuid_made(-day - hour))), 410, "key_expired"));
  EXPECT_EQ(arrivals(), 1);
  EXPECT_EQ(ask(charge(uuid_made(0))).status, 201);
  EXPECT_TRUE(replays(before, ask(charge("k")))) << "asked of new keys only";
  EXPECT_EQ(arrivals(), 2);
}

TEST_F(KeyTime, V25_a_replay_is_never_refused_for_the_age_of_its_key) {
  ASSERT_NO_FATAL_FAILURE(start({"--key-time", "checked"}));
  const auto key = uuid_made(-23 * hour);
  const auto released = ulid_made(-23 * hour);
  const auto first = ask(charge(key));
  ASSERT_EQ(first.status, 201);
  ASSERT_EQ(ask(charge(released, "refuse=429")).status, 429);
  clock_.pass(2 * hour);
  EXPECT_TRUE(replays(first, ask(charge(key)))) << "25 hours old, and its answer two";
  EXPECT_TRUE(is_problem(ask(charge(key, "", R"({"amount":1})")), 422, "key_reused"));
  EXPECT_TRUE(is_problem(ask(charge(uuid_made(-23 * hour - 60))), 410, "key_expired"))
      << "as old, and new";
  EXPECT_EQ(ask(charge(released)).status, 201) << "it did not run, and its record says so";
  EXPECT_EQ(effects(key), 1);
}

// The reason of the check: without it the key would run once more when its tombstone is gone, too.
TEST_F(KeyTime, V25_with_it_a_key_never_runs_again_however_long_ago_its_record_went) {
  ASSERT_NO_FATAL_FAILURE(start({"--key-time", "checked"}));
  const auto key = uuid_made(0);
  ASSERT_EQ(ask(charge(key)).status, 201);
  ASSERT_EQ(ask(charge("k")).status, 201);
  clock_.pass(day + hour);
  const auto expired = ask(charge(key));
  EXPECT_TRUE(is_problem(expired, 410, "key_expired"));
  EXPECT_NE(json_text(expired.body, "operation_ref"), "") << "its tombstone said so";
  clock_.pass(31 * day);
  const auto late = ask(charge(key));
  EXPECT_TRUE(is_problem(late, 410, "key_expired"));
  EXPECT_EQ(effects(key), 1);
  EXPECT_EQ(ask(charge("k")).status, 201) << "one that says nothing about its age runs again";
  EXPECT_EQ(effects("k"), 2);
}

// Its clock was ahead by less than is tolerated, and nothing remembers the key beyond its
// retention: what says how old it is, says so too late.
TEST_F(KeyTime, V25_a_key_of_a_client_that_is_ahead_is_not_new_when_its_record_has_just_gone) {
  ASSERT_NO_FATAL_FAILURE(start({"--key-time", "checked", "--key-first-sent", "--tombstone", "0",
                                 "--accept-rerun-after-expiry"}));
  const auto key = uuid_made(240);
  const auto sent = sent_first("k", date_of(240));
  ASSERT_EQ(ask(charge(key)).status, 201);
  ASSERT_EQ(ask(sent).status, 201);
  clock_.pass(day + 60);
  EXPECT_TRUE(is_problem(ask(charge(key)), 410, "key_expired"));
  EXPECT_TRUE(is_problem(ask(sent), 410, "key_expired"));
  EXPECT_EQ(effects(key), 1);
  EXPECT_EQ(effects("k"), 1);
}

// Between the head of a retry and the end of its body the last trace of the key went.
TEST_F(KeyTime, V25_an_old_key_whose_record_goes_while_its_body_comes_does_not_run) {
  ASSERT_NO_FATAL_FAILURE(start({"--key-time", "checked", "--tombstone", "0",
                                 "--accept-rerun-after-expiry", "--retention", "1h"}));
  const auto key = uuid_made(-50 * 60);
  const auto first = ask(charge(key));
  ASSERT_EQ(first.status, 201);
  clock_.pass(30 * 60);
  ASSERT_TRUE(replays(first, ask(charge(key))));
  const auto whole = to_wire(with(charge(key), "Expect", "100-continue"));
  Connection slow(gateway_->address());
  ASSERT_TRUE(slow.send_raw(std::string_view(whole).substr(0, whole.size() - 1)));
  std::string invited;  // So its record was found, and only then it goes.
  ASSERT_TRUE(read_until(slow.socket(), invited, "100 Continue\r\n\r\n"));
  clock_.pass(31 * 60);
  ASSERT_TRUE(slow.send_raw(std::string_view(whole).substr(whole.size() - 1)));
  EXPECT_TRUE(is_problem(slow.read_response(), 410, "key_expired"));
  EXPECT_EQ(effects(key), 1);
}

TEST_F(KeyTime, V25_a_key_that_grows_too_old_while_its_body_comes_does_not_run_again) {
  ASSERT_NO_FATAL_FAILURE(start({"--key-time", "checked", "--tombstone", "0",
                                 "--accept-rerun-after-expiry", "--retention", "1h"}));
  const auto key = uuid_made(-50 * 60);
  ASSERT_EQ(ask(charge(key)).status, 201);
  const auto whole = to_wire(with(charge(key), "Expect", "100-continue"));
  Connection slow(gateway_->address());
  ASSERT_TRUE(slow.send_raw(std::string_view(whole).substr(0, whole.size() - 1)));
  std::string invited;  // So it was young enough, and only then its record goes.
  ASSERT_TRUE(read_until(slow.socket(), invited, "100 Continue\r\n\r\n"));
  clock_.pass(61 * 60);
  ASSERT_TRUE(slow.send_raw(std::string_view(whole).substr(whole.size() - 1)));
  EXPECT_TRUE(is_problem(slow.read_response(), 410, "key_expired"));
  EXPECT_EQ(effects(key), 1);
}

TEST_F(KeyTime, V25_a_request_that_was_sent_first_too_long_ago_is_refused) {
  ASSERT_NO_FATAL_FAILURE(start({"--key-first-sent"}));
  EXPECT_TRUE(is_problem(ask(sent_first("a", date_of(-day - hour))), 410, "key_expired"));
  EXPECT_TRUE(is_problem(ask(sent_first("b", date_of(hour))), 400, "key_invalid"));
  for (const char* malformed :
       {"", "yesterday", "2026-11-22T21:00:00Z", "0", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Mon, 06 Nov 1994 08:49:37 GMT"}) {
    EXPECT_TRUE(is_problem(ask(sent_first("c", malformed)), 400, "key_invalid")) << malformed;
  }
  const auto twice = with(sent_first("d", date_of(0)), "repeatability-first-sent", date_of(0));
  EXPECT_TRUE(is_problem(ask(twice), 400, "key_invalid"));
  EXPECT_EQ(arrivals(), 0);
  const auto first = ask(sent_first("e", date_of(-day + hour)));
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(ask(charge("f")).status, 201) << "a key without a time is not checked";
  EXPECT_EQ(arrivals(), 2);
  clock_.pass(2 * hour);
  for (const auto& date : {date_of(-day + hour), std::string("yesterday"), date_of(-9 * day)}) {
    EXPECT_TRUE(replays(first, ask(sent_first("e", date)))) << date;
  }
  EXPECT_EQ(arrivals(), 2);
}

TEST_F(KeyTime, V25_without_the_settings_nobody_looks_at_times) {
  ASSERT_NO_FATAL_FAILURE(start({}));
  EXPECT_EQ(ask(charge(uuid_made(-99 * day))).status, 201);
  EXPECT_EQ(ask(charge(ulid_made(99 * day))).status, 201);
  EXPECT_EQ(ask(sent_first("k", "yesterday")).status, 201);
  EXPECT_EQ(arrivals(), 3);
}

}  // namespace
}  // namespace idem::test
