#include "loop/offload.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <string>
#include <vector>

/// The turns on the thread beside the loops.
namespace idem::test {
namespace {

TEST(Offload, one_party_with_many_jobs_delays_its_own) {
  std::vector<std::string> order;
  {
    std::latch begun(1);
    std::latch go_on(1);
    Offload offload("test");  // Its end waits for the jobs, which refer to those.
    offload.post(
        [&] {
          begun.count_down();
          go_on.wait();
        },
        "a");
    begun.wait();
    for (const char* const party : {"a", "a", "a", "b", "b", "c"}) {
      offload.post([&order, party] { order.emplace_back(party); }, party);
    }
    go_on.count_down();
  }
  EXPECT_EQ(order, (std::vector<std::string>{"a", "b", "c", "a", "b", "a"}));
}

TEST(Offload, several_threads_work_at_the_same_time) {
  std::latch both(2);
  std::latch done(2);
  Offload offload("test", 2);
  for (int n = 0; n < 2; ++n) {
    offload.post([&] {
      both.arrive_and_wait();  // One alone would wait for ever.
      done.count_down();
    });
  }
  done.wait();
}

}  // namespace
}  // namespace idem::test
