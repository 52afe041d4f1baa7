#include "cli/log/log_writer.hpp"

#include "core/bytes/last_words.hpp"

#include <idem/worker_limits.hpp>

#include <pthread.h>

#include <algorithm>
#include <climits>
#include <csignal>

namespace idem::cli {
namespace {

/// How soon the thread sees that it is to give up a reader that stands still.
constexpr Millis reader_interval{20};

/// A thread that starts takes its starter's mask of signals: here one that blocks all of them,
/// because the process waits for its signals on the main thread.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

LogWriter::LogWriter(int descriptor, Hooks hooks)
    : descriptor_(descriptor),
      hooks_(std::move(hooks)),
      room_{limits::log_waiting_bytes_max, limits::log_waiting_bytes_max} {
  const NoSignals blocked;
  thread_ = std::thread([this] { run(); });
}

LogWriter::~LogWriter() {
  flush(limits::log_flush_max);
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void LogWriter::write(Kind kind, std::string line, std::uint64_t mark) {
  {
    const std::lock_guard lock(mutex_);
    std::size_t& room = room_of(kind);
    if (line.size() <= room) {
      room -= line.size();
      ++accepted_;
      waiting_.push_back({kind, std::move(line), mark});
      wake_.notify_one();
      return;
    }
    count_lost(1);
  }
  tell_lost({{kind, {}, mark}});
}

void LogWriter::flush(Millis patience) {
  Lines lost;
  {
    std::unique_lock lock(mutex_);
    const auto is_done = [this, until = accepted_] { return ended_ >= until; };
    const Millis little = 5 * reader_interval;
    const Millis wait = is_given_up_ ? std::min(patience, little) : patience;
    if (written_.wait_for(lock, wait, is_done)) return;
    ++abandoned_;
    is_given_up_ = true;
    count_lost(waiting_.size());
    ended_ += waiting_.size();
    for (Line& line : waiting_) {
      room_of(line.kind) += line.text.size();
      lost.push_back(std::move(line));
    }
    waiting_.clear();
    // The thread gives up what it holds itself, as soon as it looks.
    written_.wait_for(lock, little, is_done);
  }
  tell_lost(lost);
}

std::uint64_t LogWriter::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void LogWriter::count_lost(std::size_t lines) {
  if (lines == 0) return;
  if (lost_ == reported_) lost_since_ = MonotonicClock::now();
  lost_ += lines;
}

void LogWriter::tell_lost(const Lines& lines) const {
  for (const Line& line : lines) {
    if (line.mark != 0 && hooks_.lost_marked) hooks_.lost_marked(line.mark);
  }
}

// Several at once: one call of the kernel for many lines, where they come faster than it takes.
LogWriter::Lines LogWriter::take() {
  Lines lines;
  std::size_t bytes = 0;
  while (!waiting_.empty() && (lines.empty() || bytes + waiting_.front().text.size() <= PIPE_BUF)) {
    bytes += waiting_.front().text.size();
    lines.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return lines;
}

// Not with each line while a slow reader has lines waiting all the time.
LogWriter::Lost LogWriter::to_report() {
  if (lost_ == reported_) return {};
  const auto lasting = MonotonicClock::now() - lost_since_;
  if (!waiting_.empty() && lasting < limits::log_lost_interval) return {};
  return {lost_ - reported_, static_cast<std::uint64_t>(lasting.count() / 1'000)};
}

// Who waits for the end of these lines then knows of their loss.
void LogWriter::end(const Lines& lines, bool are_written) {
  if (!are_written) tell_lost(lines);
  {
    const std::lock_guard lock(mutex_);
    for (const Line& line : lines) room_of(line.kind) += line.text.size();
    if (are_written) is_given_up_ = false;
    if (!are_written) count_lost(lines.size());
    ended_ += lines.size();
  }
  written_.notify_all();
}

bool LogWriter::is_abandoned(std::uint64_t since) const {
  const std::lock_guard lock(mutex_);
  return abandoned_ != since;
}

bool LogWriter::write_out(std::string_view text, std::uint64_t abandoned) {
  for (;;) {
    const Written written = write_within(descriptor_, text, reader_interval);
    if (written != Written::not_in_time) return written == Written::all;
    if (is_abandoned(abandoned)) return false;
  }
}

void LogWriter::run() {
  ::pthread_setname_np(::pthread_self(), "idem-log");
  for (;;) {
    Lines lines;
    Lost lost;
    std::uint64_t abandoned = 0;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return is_ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      lines = take();
      lost = to_report();
      abandoned = abandoned_;
    }
    std::string text;
    if (lost.lines > 0) text = hooks_.report(lost);
    for (const Line& line : lines) text += line.text;
    const bool are_written = write_out(text, abandoned);
    if (are_written && lost.lines > 0) {
      const std::lock_guard lock(mutex_);
      reported_ += lost.lines;
      lost_since_ = MonotonicClock::now();
    }
    end(lines, are_written);
  }
}

}  // namespace idem::cli
