#pragma once

#include "store/log/log_store.hpp"
#include "store_conformance/harness.hpp"

#include <atomic>
#include <string>
#include <vector>

namespace idem::test {

/// A process that writes pairs of reserve and complete into an embedded store until it is killed,
/// and the judgement of what it left. Of the log the files are so small that they begin, end, are
/// indexed and deleted all the time.
class KilledWriter : public testing::Test {
 protected:
  static constexpr std::uint64_t tiny = 64UL * 1024;
  /// By the test's clock.
  static constexpr Millis a_life = 5s;
  static constexpr std::uint64_t keys_of_a_life = 1'000'000;

  /// What the killed process said: 'r' once a reserve was granted, 'c' once a complete was done,
  /// 'j' once a line was in a journal.
  struct Said {
    char what;
    std::uint64_t number;
  };
  static std::vector<Said> parse(const std::string& said);

  std::expected<std::unique_ptr<Store>, StoreError> try_open(const std::string& path);
  /// Null behind a failed expectation.
  std::unique_ptr<Store> open(const std::string& path);
  /// Starts one whose keys begin with `first`, and kills it once it said so much. `environment`
  /// has texts "NAME=VALUE".
  std::vector<Said> run_and_kill(const std::string& path, std::uint64_t first, int said_before,
                                 const std::vector<std::string>& environment = {});
  /// The first of what was said that is not so, or a key that would run again. Empty: none. Records
  /// that end soon are left out.
  std::string first_loss(Store& store, const std::vector<Said>& all);
  void judge(Store& store, const std::vector<Said>& all) { EXPECT_EQ(first_loss(store, all), ""); }
  /// The process itself: reads its order, and never returns.
  void write_as_ordered();

  TestClock clock;
  std::string kind_ = "log";  ///< Or "sqlite"; or "sharded", of which each life has other shards.
  /// With which a sharded one is opened here; 0: with those of the last life.
  std::uint32_t shards_ = 0;
  std::uint64_t segment_bytes_ = tiny;
  std::atomic<std::size_t> said_so_far_{0};
  std::size_t judged_ = 0;  ///< Records that first_loss() asked for.

 private:
  [[noreturn]] void write_on(const std::string& path, std::uint64_t first);
};

}  // namespace idem::test
