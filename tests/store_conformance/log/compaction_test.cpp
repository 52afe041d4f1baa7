#include "store/log/log_store.hpp"
#include "store_conformance/harness.hpp"

#include <fmt/format.h>

#include <fstream>

/// What expiry leaves in the log's files of versions.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

constexpr LogSizes tiny_files{
    .segment_bytes = 64UL * 1024, .cache_bytes = 1UL << 20U, .buffer_bytes = 128UL * 1024};

Reserve reserve_of_many(int number, int token_number = 1) {
  Reserve verb = a_reserve(1, token_number);
  for (std::size_t i = 0; i < 4; ++i) {
    verb.id.bytes[i] = static_cast<std::uint8_t>((number * 0x9e3779b1U) >> (8 * i));
  }
  verb.generation = 1;
  return verb;
}

class LogCompaction : public testing::Test {
 protected:
  std::string path() const { return folder_.file("idem.log"); }
  void open() {
    store_.reset();
    auto opened = open_log(path(), test_settings(), {.host = clock.host(), .sizes = tiny_files});
    ASSERT_TRUE(opened) << opened.error().detail;
    store_ = std::move(*opened);
  }

  void complete(int number, Millis retention) {
    Reserve verb = reserve_of_many(number);
    verb.retention = verb.tombstone = retention;
    const auto outcome = ask_and_wait(*store_, verb);
    ASSERT_TRUE(outcome && is<Execute>(*outcome));
    Complete done = a_complete(std::get<Execute>(*outcome));
    done.response.body = std::string(500, 'x');
    ASSERT_TRUE(ask_and_wait(*store_, std::move(done)));
  }
  void expect_replay(int number) {
    const Reserve verb = reserve_of_many(number, 2);
    const auto outcome = ask_and_wait(*store_, verb);
    ASSERT_TRUE(outcome);
    EXPECT_TRUE(is<Replay>(*outcome)) << number << ": " << describe(*outcome);
  }
  void reap_all() {
    for (;;) {
      const auto reaped = ask_and_wait(*store_, Reap{500});
      ASSERT_TRUE(reaped);
      if (reaped->empty()) return;
    }
  }

  std::uint64_t bytes_of_versions() const {
    std::uint64_t bytes = 0;
    for (const auto& file : fs::directory_iterator(path() + "/records")) {
      std::error_code gone;
      const auto size = file.file_size(gone);
      if (!gone) bytes += size;
    }
    return bytes;
  }
  /// Each answer comes between two parts of the store's own work.
  bool shrinks_to(std::uint64_t bytes) {
    for (int i = 0; i < 20'000; ++i) {
      if (bytes_of_versions() <= bytes) return true;
      (void)ask_and_wait(*store_, Find{key(1)});
    }
    return false;
  }

  TestClock clock;
  TempFolder folder_;
  std::unique_ptr<Store> store_;
};

TEST_F(LogCompaction, files_with_few_records_left_are_copied_together) {
  open();
  constexpr int records = 1'500;
  for (int number = 1; number <= records; ++number) {
    complete(number, number % 5 == 0 ? Millis(24h) : Millis(1h));
  }
  const std::uint64_t before = bytes_of_versions();
  const std::string first = path() + "/records/00000001.records";
  fs::copy_file(first, path() + "/first");
  clock.advance(3h);
  reap_all();
  EXPECT_TRUE(shrinks_to(before / 3)) << before << " and now " << bytes_of_versions();
  for (int number = 5; number <= records; number += 5) expect_replay(number);
  // A deletion that a power loss undid is made again, once nothing present was found in the file.
  ASSERT_FALSE(fs::exists(first));
  store_.reset();
  fs::rename(path() + "/first", first);
  open();
  for (int i = 0; i < 20'000 && fs::exists(first); ++i) {
    (void)ask_and_wait(*store_, Find{key(1)});
  }
  EXPECT_FALSE(fs::exists(first));
  for (int number = 5; number <= records; number += 5) expect_replay(number);
  // What was copied ends, too.
  clock.advance(48h);
  reap_all();
  EXPECT_TRUE(shrinks_to(3 * tiny_files.segment_bytes)) << bytes_of_versions();
  const auto count = ask_and_wait(*store_, Count{});
  ASSERT_TRUE(count);
  EXPECT_EQ(count->by_state[static_cast<std::size_t>(State::completed)], 0U);
}

TEST_F(LogCompaction, T01_a_file_that_is_damaged_is_not_copied) {
  open();
  constexpr int records = 300;
  for (int number = 1; number <= records; ++number) {
    complete(number, number % 5 == 0 ? Millis(24h) : Millis(1h));
  }
  store_.reset();
  const std::string file = path() + "/records/00000001.records";
  const auto size = fs::file_size(file);
  {
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(static_cast<std::streamoff>(size / 2));
    out << std::string(700, '\xff');
  }
  open();
  clock.advance(3h);
  reap_all();
  // Every record is still there, or blocks its key.
  for (int number = 5; number <= records; number += 5) {
    const Reserve verb = reserve_of_many(number, 2);
    const auto outcome = ask_and_wait(*store_, verb);
    EXPECT_TRUE(!outcome || is<Replay>(*outcome)) << number << ": " << describe(*outcome);
  }
}

}  // namespace
}  // namespace idem::test
