#include "cli/terminal/progress.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>

namespace idem::cli {
namespace {

/// Stderr in a pipe.
class Piped {
 public:
  Piped() {
    std::fflush(stderr);
    EXPECT_EQ(::pipe(ends_.data()), 0);
    before_ = ::dup(STDERR_FILENO);
    ::dup2(ends_[1], STDERR_FILENO);
  }
  ~Piped() {
    std::fflush(stderr);
    ::dup2(before_, STDERR_FILENO);
    for (const int one : {before_, ends_[0], ends_[1]}) ::close(one);
  }
  Piped(const Piped&) = delete;
  Piped& operator=(const Piped&) = delete;

  /// The next line, once there is one.
  std::string line() const {
    std::string line;
    for (char c = 0; ::read(ends_[0], &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

 private:
  std::array<int, 2> ends_{};
  int before_ = -1;
};

TEST(ProgressInAPipe, is_a_line_now_and_then_also_while_nothing_goes_on) {
  const Piped piped;
  Progress progress("idem store: ", "copying", Progress::Elsewhere::slow_lines,
                    std::chrono::milliseconds(1));
  EXPECT_TRUE(piped.line().starts_with("idem store: copying, "));
  progress.show("pass 1: 38 records", 38, 100);
  std::string line = piped.line();
  while (line.starts_with("idem store: copying, ")) line = piped.line();
  EXPECT_TRUE(line.starts_with("idem store: pass 1: 38 records")) << line;
  EXPECT_EQ(line.find('\x1b'), std::string::npos) << line;
}

}  // namespace
}  // namespace idem::cli
