#pragma once

#include <chrono>

namespace idem::test {

/// From its construction to its end the test does what `cause` names, in one word: "databases".
/// Under IDEM_TEST_TIMES=1, which tests/runner sets, a line tells the runner. Of nested ones the
/// outermost counts.
class TimeSpent {
 public:
  explicit TimeSpent(const char* cause);
  ~TimeSpent();
  TimeSpent(const TimeSpent&) = delete;
  TimeSpent& operator=(const TimeSpent&) = delete;

 private:
  const char* cause_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace idem::test
