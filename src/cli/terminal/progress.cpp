#include "cli/terminal/progress.hpp"

#include "cli/terminal/terminal.hpp"
#include "cli/terminal/text_width.hpp"

#include <unistd.h>

#include <cstdio>

namespace idem::cli {
namespace {

constexpr auto first_after = std::chrono::milliseconds(500);
constexpr auto next_after = std::chrono::milliseconds(250);

std::mutex line_mutex;
bool has_line = false;

void rewrite(const std::string& text) {
  const std::lock_guard lock(line_mutex);
  if (text.empty() && !has_line) return;
  // To the line's beginning, and away with what is there.
  const std::string bytes = "\r\x1b[K" + text;
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
  has_line = !text.empty();
}

}  // namespace

void erase_progress() { rewrite({}); }

Progress::Progress(std::string begin, std::string text, Elsewhere elsewhere,
                   std::chrono::milliseconds slow)
    : begin_(std::move(begin)),
      is_shown_(can_rewrite_lines(STDERR_FILENO)),
      elsewhere_(elsewhere),
      slow_(slow),
      text_(std::move(text)) {
  const bool is_written = is_shown_ || elsewhere == Elsewhere::slow_lines;
  if (is_written) writer_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Progress::~Progress() {
  if (!writer_.joinable()) return;
  writer_.request_stop();
  writer_.join();
  if (is_shown_) erase_progress();
}

void Progress::show(std::string text, std::optional<std::uint64_t> done,
                    std::optional<std::uint64_t> total) {
  const std::lock_guard lock(mutex_);
  if (!is_shown_ && elsewhere_ == Elsewhere::lines && text != text_) {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  text_ = std::move(text);
  done_ = done;
  total_ = total;
}

std::string Progress::line(Clock::time_point now) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - began_).count();
  std::string line = begin_ + text_;
  if (done_ && *done_ > 0 && seconds > 0) {
    const std::uint64_t rate = *done_ / static_cast<std::uint64_t>(seconds);
    line += ", " + std::to_string(rate) + "/s";
    if (total_ && *total_ > *done_ && rate > 0) {
      line += ", about " + std::to_string((*total_ - *done_) / rate + 1) + " s left";
    }
  }
  line += ", " + std::to_string(seconds) + " s";
  if (!is_shown_) return line;
  // In the last column the cursor would be on the next line.
  return shortened(line, terminal_columns(STDERR_FILENO).value_or(80) - 1);
}

void Progress::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (auto pause = is_shown_ ? first_after : slow_;; pause = is_shown_ ? next_after : slow_) {
    changed_.wait_for(lock, stop, pause, [] { return false; });
    if (stop.stop_requested()) return;
    if (is_shown_) {
      rewrite(line(Clock::now()));
    } else {
      std::fprintf(stderr, "%s\n", line(Clock::now()).c_str());
    }
  }
}

}  // namespace idem::cli
