#include "workers/failures.hpp"

#include <gtest/gtest.h>

#include <vector>

/// Log lines and rests of work whose store does not answer.
namespace idem::workers {
namespace {

using namespace std::chrono_literals;

struct Lines {
  LogSink sink() {
    return [this](LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
      std::string line(level == LogLevel::info ? "info " : "warning ");
      line += event;
      for (const LogField& field : fields) {
        line += ' ' + std::string(field.name) + '=' + field.value;
      }
      written.push_back(std::move(line));
    };
  }
  std::vector<std::string> written;
};

TEST(Failures, V31_many_in_a_row_are_one_line_and_the_recovery_another) {
  Lines lines;
  Failures failures({"relay_failed", "relay_recovered", "why"}, {"destination", "shop"});
  for (int i = 0; i < 100; ++i) failures.failed(lines.sink(), "no connection");
  for (int i = 0; i < 100; ++i) failures.succeeded(lines.sink());
  EXPECT_EQ(lines.written,
            (std::vector<std::string>{
                "warning relay_failed destination=shop why=no connection failures=1 seconds=0",
                "info relay_recovered destination=shop failures=100 seconds=0"}));
}

TEST(Failures, V31_rests_grow_with_failures_in_a_row_and_end_with_them) {
  Lines lines;
  Failures failures({"reconcile_failed", "reconcile_recovered"});
  EXPECT_EQ(failures.rest(100ms), 100ms);
  failures.failed(lines.sink(), "no connection");
  EXPECT_EQ(failures.rest(100ms), 200ms);
  for (int i = 0; i < 1'000; ++i) failures.failed(lines.sink(), "no connection");
  EXPECT_EQ(failures.rest(100ms), limits::breaker_pause_first);
  failures.succeeded(lines.sink());
  EXPECT_EQ(failures.rest(100ms), 100ms);
  EXPECT_EQ(failures.rest(1min), 1min) << "longer than any rest after failures";
}

}  // namespace
}  // namespace idem::workers
