#include "cli/log/log_writer.hpp"

#include <idem/worker_limits.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

/// Nobody waits for the reader of the log.
namespace idem::cli {
namespace {

using Kind = LogWriter::Kind;

class LogWriterTest : public testing::Test {
 protected:
  LogWriterTest() {
    EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    writer_.emplace(ends_[1], LogWriter::Hooks{.report =
                                                   [](const LogWriter::Lost& lost) {
                                                     return "lost " + std::to_string(lost.lines) +
                                                            "\n";
                                                   },
                                               .lost_marked =
                                                   [this](std::uint64_t mark) {
                                                     const std::lock_guard lock(mutex_);
                                                     marks_.push_back(mark);
                                                   }});
  }
  ~LogWriterTest() override {
    writer_.reset();
    ::close(ends_[1]);
    ::close(ends_[0]);
  }

  /// Lines of `kind`, until one is lost.
  std::uint64_t fill(Kind kind) {
    const auto before = writer_->lost();
    std::uint64_t written = 0;
    for (; writer_->lost() == before; ++written)
      writer_->write(kind, std::string(1'000, 'x') + "\n");
    return written - 1;
  }
  /// All that comes until the pipe stays empty for as long as the writer looks.
  std::string read_all() {
    std::string text;
    pollfd readable{ends_[0], POLLIN, 0};
    while (::poll(&readable, 1, 500) > 0) {
      char piece[65'536];
      text.append(piece, static_cast<std::size_t>(::read(ends_[0], piece, sizeof piece)));
    }
    return text;
  }
  std::vector<std::uint64_t> marks() {
    const std::lock_guard lock(mutex_);
    return marks_;
  }

  int ends_[2] = {-1, -1};
  std::mutex mutex_;
  std::vector<std::uint64_t> marks_;
  std::optional<LogWriter> writer_;
};

TEST_F(LogWriterTest, R01_lines_keep_their_order_and_are_whole) {
  std::string all;
  for (int i = 0; i < 2'000; ++i) {
    const std::string line = "line " + std::to_string(i) + "\n";
    writer_->write(i % 3 == 0 ? Kind::of_process : Kind::of_clients, line);
    all += line;
  }
  EXPECT_EQ(read_all(), all);
  EXPECT_EQ(writer_->lost(), 0);
}

TEST_F(LogWriterTest, R01_a_reader_that_stands_still_loses_lines_of_clients_and_gets_a_report) {
  const auto written = fill(Kind::of_clients);
  EXPECT_GE(written * 1'001, limits::log_waiting_bytes_max - 2'000);
  writer_->write(Kind::of_process, "important\n", 7);
  for (int i = 0; i < 9; ++i) writer_->write(Kind::of_clients, std::string(1'000, 'y') + "\n");
  EXPECT_EQ(writer_->lost(), 10);
  const std::string text = read_all();
  EXPECT_NE(text.find("important\n"), text.npos);
  EXPECT_EQ(text.find('y'), text.npos);
  const auto reported = text.find("lost 10\n");
  ASSERT_NE(reported, text.npos) << "one line says how many";
  EXPECT_EQ(text.find("lost ", reported + 1), text.npos);
  EXPECT_TRUE(marks().empty());
}

TEST_F(LogWriterTest, R01_a_lost_line_with_a_mark_is_reported_at_once) {
  (void)fill(Kind::of_process);
  writer_->write(Kind::of_process, std::string(2'000, 'z') + "\n", 42);
  EXPECT_EQ(marks(), std::vector<std::uint64_t>{42});
}

TEST_F(LogWriterTest, R01_a_flush_gives_up_a_reader_that_stands_still) {
  (void)fill(Kind::of_clients);
  writer_->write(Kind::of_process, "marked\n", 5);
  const auto before = writer_->lost();
  writer_->flush(Millis(50));
  EXPECT_GT(writer_->lost(), before + 900) << "about a thousand lines waited";
  EXPECT_EQ(marks(), std::vector<std::uint64_t>{5});
  (void)read_all();
  writer_->write(Kind::of_process, "again\n");
  EXPECT_NE(read_all().find("again\n"), std::string::npos);
}

TEST_F(LogWriterTest, R01_a_flush_waits_for_a_reader_that_reads) {
  std::string text;
  (void)fill(Kind::of_clients);
  writer_->write(Kind::of_process, "the end\n");
  std::thread reader([&] { text = read_all(); });
  writer_->flush(std::chrono::minutes(1));
  reader.join();
  EXPECT_NE(text.find("the end\n"), text.npos);
}

TEST_F(LogWriterTest, R01_the_descriptor_stays_as_it_was) {
  writer_->write(Kind::of_process, "line\n");
  writer_->flush(std::chrono::minutes(1));
  EXPECT_EQ(::fcntl(ends_[1], F_GETFL) & O_NONBLOCK, 0);
}

TEST(LogWriterOfAFullDisk, R01_a_line_that_cannot_be_written_is_lost_and_counted) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  {
    std::vector<std::uint64_t> marks;
    LogWriter writer(full, {.report = [](const LogWriter::Lost&) { return std::string("lost\n"); },
                            .lost_marked = [&](std::uint64_t mark) { marks.push_back(mark); }});
    writer.write(Kind::of_process, "line\n", 3);
    writer.flush(std::chrono::minutes(1));
    EXPECT_EQ(writer.lost(), 1);
    EXPECT_EQ(marks, std::vector<std::uint64_t>{3});
  }
  ::close(full);
}

}  // namespace
}  // namespace idem::cli
