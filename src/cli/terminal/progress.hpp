#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace idem::cli {

/// How far long work is, as one line on stderr that is written again four times a second, and
/// erased at the end; or as lines where that is no terminal. One at a time.
class Progress {
 public:
  /// What is written where stderr is no terminal: nothing, or a line for each new text, or one each
  /// `slow_lines` for as long as the work lasts, so that a log shows that it goes on.
  enum class Elsewhere : std::uint8_t { nothing, lines, slow_lines };
  static constexpr std::chrono::milliseconds slow_lines{10'000};

  /// `begin`: the beginning of the line, such as "idem audit: ", and the text until the first
  /// show(). Work of less than half a second shows nothing. `slow`: the pause of slow lines.
  Progress(std::string begin, std::string text, Elsewhere elsewhere = Elsewhere::nothing,
           std::chrono::milliseconds slow = slow_lines);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// What is done by now. With `done` the line has the rate, with `total` also the time that is
  /// left at this rate. Any thread.
  void show(std::string text, std::optional<std::uint64_t> done = std::nullopt,
            std::optional<std::uint64_t> total = std::nullopt);
  /// Whether there is a terminal that can show it.
  bool is_shown() const { return is_shown_; }

 private:
  using Clock = std::chrono::steady_clock;

  void run(const std::stop_token& stop);
  std::string line(Clock::time_point now) const;

  const std::string begin_;
  const bool is_shown_;
  const Elsewhere elsewhere_;
  const std::chrono::milliseconds slow_;
  const Clock::time_point began_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string text_;
  std::optional<std::uint64_t> done_, total_;
  std::jthread writer_;
};

/// Erases the line if there is one, so that another may be written. Any thread.
void erase_progress();

}  // namespace idem::cli
