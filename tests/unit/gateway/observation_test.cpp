// A gateway's observations of requests: bounded, and no client silences another.
#include "gateway/observation.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace idem::gateway {
namespace {

class Observations : public testing::Test {
 protected:
  void log(LogLevel level, std::string_view event, int times) {
    for (int i = 0; i < times; ++i) observer_.log(level, event, {{"operation_ref", "0"}});
  }

  std::map<std::string, int> written_;
  std::map<std::string, std::string> last_;  ///< The number of failures in an event's last line.
  metrics::Registry registry_{metrics::TenantLabel::off, Secret{}};
  Observing observing_{registry_,
                       [this](LogLevel, std::string_view event, auto fields) {
                         ++written_[std::string(event)];
                         for (const LogField& field : fields) {
                           if (field.name == "failures") last_[std::string(event)] = field.value;
                         }
                       },
                       true};
  Observer observer_{observing_};
};

TEST_F(Observations, one_event_does_not_silence_another) {
  log(LogLevel::warning, "key_reused", 10'000);
  log(LogLevel::warning, "outcome_unknown", 1);
  log(LogLevel::info, "request", 1);
  EXPECT_EQ(written_["outcome_unknown"], 1);
  EXPECT_EQ(written_["request"], 1);
  EXPECT_LT(written_["key_reused"], 10'000);
}

TEST_F(Observations, errors_are_all_written) {
  log(LogLevel::warning, "settle_failed", 1'000);
  written_.clear();
  log(LogLevel::error, "settle_failed", 1'000);
  EXPECT_EQ(written_["settle_failed"], 1'000);
}

TEST_F(Observations, R31_a_store_that_fails_is_a_line_at_its_beginning_and_one_at_its_end) {
  Observer other(observing_);
  for (int i = 0; i < 5'000; ++i) {
    observer_.store_failed({StoreError::Code::unavailable, "no connection"});
    other.store_failed({StoreError::Code::in_doubt, "the reply was lost"});
  }
  EXPECT_EQ(written_["store_error"], 1);
  EXPECT_EQ(written_["lines_kept_back"], 0);
  other.store_answered();
  observer_.store_answered();
  EXPECT_EQ(written_["store_recovered"], 1);
  EXPECT_EQ(last_["store_recovered"], "10000");
}

TEST_F(Observations, R31_a_request_or_a_record_that_is_at_fault_says_nothing_about_the_store) {
  observer_.store_failed({StoreError::Code::unstorable, "longer than the server takes"});
  observer_.store_failed({StoreError::Code::damaged, "the bytes differ"});
  observer_.store_answered();
  EXPECT_EQ(written_, (std::map<std::string, int>{{"request_not_storable", 1}}));
}

}  // namespace
}  // namespace idem::gateway
