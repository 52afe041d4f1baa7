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
      for (std::size_t at = 0; at < size; at += piece) {
        ASSERT_TRUE(body.append(std::string_view(text).substr(at, piece)));
      }
      ASSERT_TRUE(body.complete());
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
    EXPECT_TRUE(body.append(text_of(3 * bound))) << i;
    EXPECT_TRUE(body.complete());
  }
}

TEST_F(ReceivedBodies, beyond_the_space_are_refused_and_leave_nothing) {
  const auto spill = space(3 * bound);
  ReceivedBody first(*spill);
  EXPECT_TRUE(first.append(text_of(2 * bound)));
  {
    ReceivedBody second(*spill);
    EXPECT_TRUE(second.append(text_of(bound)));
    EXPECT_TRUE(second.append(text_of(bound))) << "one piece on the disk, one in memory";
    EXPECT_FALSE(second.append("x"));
    EXPECT_TRUE(directory_is_empty());
  }
  EXPECT_TRUE(first.append(text_of(bound)));
  EXPECT_TRUE(first.complete());
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
  EXPECT_TRUE(small.append(text_of(bound)));
  EXPECT_TRUE(small.complete());
  ReceivedBody large(*spill);
  EXPECT_TRUE(large.append(text_of(bound)));
  EXPECT_FALSE(large.append("x")) << "the directory is gone";
}

}  // namespace
}  // namespace idem::http
