#include "store/log/segment_log.hpp"
#include "store_conformance/harness.hpp"

#include <fmt/format.h>

#include <fstream>

/// The log's files: what a start reads of them after a crash, and what it refuses.
namespace idem::test {
namespace {

namespace fs = std::filesystem;
using segments::SegmentLog;

class SegmentLogFiles : public testing::Test {
 protected:
  std::unique_ptr<SegmentLog> open() {
    auto log = SegmentLog::open(folder_.file(""), segment_bytes);
    EXPECT_TRUE(log) << log.error();
    return std::move(*log);
  }
  /// The numbers and contents of all frames, or the error.
  std::string replay(SegmentLog& log) {
    std::string all;
    const auto done = log.replay(0, 0, [&](const SegmentLog::Frame& frame) {
      all += fmt::format("{}:{}+{} ", frame.number, frame.versions, frame.index);
    });
    return done ? all : "refused: " + done.error();
  }
  std::string replay() { return replay(*open()); }
  void write(const std::vector<std::string>& frames) {
    const auto log = open();
    (void)replay(*log);
    for (const std::string& frame : frames) log->append(frame, "i");
  }

  std::string file(int number) const { return folder_.file(fmt::format("{:08}.segment", number)); }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  static constexpr std::uint64_t segment_bytes = 200;
  TempFolder folder_;
};

TEST_F(SegmentLogFiles, T16_frames_come_back_over_several_files) {
  const auto log = open();
  EXPECT_EQ(replay(*log), "");
  std::string all;
  for (int i = 1; i <= 20; ++i) {
    const std::uint64_t place = log->next();
    const std::string version = fmt::format("version-{}", i);
    log->append(version, "index");
    std::string read;
    ASSERT_TRUE(log->read(place, version.size(), read));
    EXPECT_EQ(read, version);
    all += fmt::format("{}:{}+index ", i, version);
  }
  EXPECT_TRUE(fs::exists(file(4)));
  EXPECT_EQ(replay(), all);
}

// However far the last write came, the frame before is the end, and the log goes on behind it.
TEST_F(SegmentLogFiles, T16_a_frame_that_a_crash_cut_is_the_end) {
  write({"one", "two"});
  const std::string two = content(file(1));
  const std::size_t begin = two.find("two") - 32;
  const std::size_t end = begin + 32 + 4;
  for (std::size_t at = begin; at < end; ++at) {
    std::string cut = two;
    std::fill(cut.begin() + static_cast<std::ptrdiff_t>(at), cut.end(), '\0');
    if (cut == two) continue;  // The rest of the frame is zeros.
    put(file(1), cut);
    ASSERT_EQ(replay(), "1:one+i ") << "cut at " << at;
    put(file(1), cut.substr(0, at));
    ASSERT_EQ(replay(), "1:one+i ") << "ends at " << at;
  }
  write({"three"});
  EXPECT_EQ(replay(), "1:one+i 2:three+i ");
}

TEST_F(SegmentLogFiles, T16_a_damaged_byte_before_the_end_is_refused) {
  write({"one", "two", "three"});
  const std::string whole = content(file(1));
  const std::size_t third = whole.find("three") - 32;
  for (std::size_t at = 0; at < third; ++at) {
    // What fills a frame up, and a number that means nothing.
    const std::size_t in_frame = at % 40;
    if (in_frame >= 36 || (in_frame >= 12 && in_frame < 16)) continue;
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    put(file(1), damaged);
    ASSERT_TRUE(replay().starts_with("refused: ")) << "byte " << at << ": " << replay();
  }
}

TEST_F(SegmentLogFiles, T16_a_missing_file_is_refused) {
  write({std::string(300, 'a'), std::string(300, 'b'), std::string(300, 'c')});
  ASSERT_TRUE(fs::exists(file(3)));
  fs::rename(file(2), folder_.file("elsewhere"));
  EXPECT_TRUE(replay().starts_with("refused: ")) << replay();
  fs::rename(folder_.file("elsewhere"), file(2));
  fs::rename(file(1), folder_.file("elsewhere"));
  EXPECT_TRUE(replay().starts_with("refused: ")) << replay();
}

}  // namespace
}  // namespace idem::test
