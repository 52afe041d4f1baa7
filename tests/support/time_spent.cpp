#include "support/time_spent.hpp"

#include "support/external_data.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace idem::test {
namespace {

thread_local int depth = 0;

}  // namespace

TimeSpent::TimeSpent(const char* cause) : cause_(cause) { ++depth; }

TimeSpent::~TimeSpent() {
  static const bool is_asked_for = required("IDEM_TEST_TIMES");
  if (--depth > 0 || !is_asked_for) return;
  const auto took = std::chrono::steady_clock::now() - began_;
  fmt::print("[ SPENT    ] {} {} us\n", cause_,
             std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  std::fflush(stdout);
}

}  // namespace idem::test
