#include "http/received_body.hpp"

#include <idem/limits.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "support/temp_dir.hpp"

namespace idem::http {
namespace {

constexpr std::size_t bound = limits::request_body_memory_max;

std::string text_of(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
  return text;
}

class ReceivedBodies : public testing::Test {
 protected:
  std::unique_ptr<SpillSpace> space(std::uint64_t bytes_max = limits::spill_bytes_max) {
    return std::move(SpillSpace::open(dir_.path().string(), bytes_max).value());
  }
  bool directory_is_empty() const { return std::filesystem::is_empty(dir_.path()); }

  /// As ServerStream::read_body() does it.
  static Task<bool> receive(Loop& loop, ReceivedBody& body, std::string_view text,
                            std::size_t piece) {
    for (std::size_t at = 0; at < text.size(); at += piece) {
      const auto next = text.substr(at, piece);
      if (body.must_spill(next.size())) {
        auto spilling = body.spill(loop);
        const bool is_kept = co_await spilling;
        if (!is_kept) co_return false;
      }
      body.append(next);
    }
    co_return true;
  }
  static Task<bool> complete(Loop& loop, ReceivedBody& body) {
    if (!body.must_complete()) co_return true;
    auto completing = body.complete(loop);
    const bool is_kept = co_await completing;
    co_return is_kept;
  }
  static Task<void> end_with(Loop& loop, Task<bool> task, bool& result) {
    result = co_await std::move(task);
    loop.stop();
  }
  static bool run(Loop& loop, Task<bool> task) {
    bool result = false;
    loop.spawn(end_with(loop, std::move(task), result));
    loop.run("idem-test");
    return result;
  }
  static bool append(ReceivedBody& body, std::string_view text, std::size_t piece = bound) {
    Loop loop;
    return run(loop, receive(loop, body, text, piece));
  }
  static bool complete(ReceivedBody& body) {
    Loop loop;
    return run(loop, complete(loop, body));
  }

  test::TempDir dir_;
};

TEST_F(ReceivedBodies, come_back_unchanged_in_any_size_and_pieces) {
  const auto spill = space();
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, bound - 1, bound, bound + 1,
                                 2 * bound, 2 * bound + 1, 5 * bound + 77}) {
    for (const std::size_t piece : {std::size_t{1000}, bound / 2, bound, 3 * bound}) {
      const auto text = text_of(size);
      ReceivedBody body(*spill);
      body.expect(size);
      ASSERT_TRUE(append(body, text, piece));
      ASSERT_TRUE(complete(body));
      EXPECT_TRUE(directory_is_empty());
      EXPECT_EQ(body.size(), size);
      EXPECT_TRUE(body.bytes() == text) << size << " in pieces of " << piece;
      const ReceivedBody moved(std::move(body));
      EXPECT_TRUE(moved.bytes() == text) << "moved";
    }
  }
}

TEST_F(ReceivedBodies, give_their_room_back) {
  const auto spill = space(3 * bound);
  for (int i = 0; i < 5; ++i) {
    ReceivedBody body(*spill);
    EXPECT_TRUE(append(body, text_of(3 * bound))) << i;
    EXPECT_TRUE(complete(body));
  }
}

TEST_F(ReceivedBodies, beyond_the_space_are_refused_and_leave_nothing) {
  const auto spill = space(3 * bound);
  ReceivedBody first(*spill);
  EXPECT_TRUE(append(first, text_of(3 * bound))) << "two pieces on the disk, one in memory";
  {
    ReceivedBody second(*spill);
    EXPECT_TRUE(append(second, text_of(bound)));
    EXPECT_TRUE(append(second, text_of(bound))) << "one piece on the disk, one in memory";
    EXPECT_FALSE(append(second, "x"));
    EXPECT_TRUE(directory_is_empty());
  }
  spill->threads().end();  // One of them gives back the room of the second.
  EXPECT_TRUE(complete(first));
}

TEST_F(ReceivedBodies, a_directory_that_cannot_hold_a_file_is_refused_with_its_name) {
  const auto refused = SpillSpace::open((dir_.path() / "missing").string());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().find("missing"), std::string::npos) << refused.error();
  EXPECT_NE(refused.error().find("No such file"), std::string::npos) << refused.error();
}

TEST_F(ReceivedBodies, small_ones_need_no_directory_at_all) {
  const auto spill = space();
  std::filesystem::remove(dir_.path());
  ReceivedBody small(*spill);
  EXPECT_TRUE(append(small, text_of(bound)));
  EXPECT_TRUE(complete(small));
  ReceivedBody large(*spill);
  EXPECT_TRUE(append(large, text_of(bound)));
  EXPECT_FALSE(append(large, "x")) << "the directory is gone";
}

}  // namespace
}  // namespace idem::http
