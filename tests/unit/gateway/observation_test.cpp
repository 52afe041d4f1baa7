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
  metrics::Registry registry_{metrics::TenantLabel::off, Secret{}};
  Observing observing_{
      registry_, [this](LogLevel, std::string_view event, auto) { ++written_[std::string(event)]; },
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

}  // namespace
}  // namespace idem::gateway
