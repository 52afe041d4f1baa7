#include "core/bytes/last_words.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <string>
#include <utility>

namespace idem {
namespace {

constexpr Millis last_words_max{1'000};

std::atomic<const ProcessLines*> process_lines{nullptr};
std::atomic<const std::string*> damage_met{nullptr};

bool has_room(int descriptor, Millis patience) noexcept {
  pollfd writable{descriptor, POLLOUT, 0};
  for (;;) {
    const int ready = ::poll(&writable, 1, static_cast<int>(patience.count()));
    if (ready >= 0 || errno != EINTR) return ready != 0;
  }
}

void write_line(std::string_view line, Millis patience) noexcept {
  const std::string text = std::string(line) + "\n";
  std::string_view left = text;
  write_within(STDERR_FILENO, left, patience);
}

}  // namespace

Written write_within(int descriptor, std::string_view& text, Millis patience) noexcept {
  const MonotonicTime end = MonotonicClock::now() + patience;
  while (!text.empty()) {
    const auto left = std::chrono::ceil<Millis>(end - MonotonicClock::now());
    if (!has_room(descriptor, std::max(left, Millis(0)))) return Written::not_in_time;
    const auto piece = text.substr(0, PIPE_BUF);
    const ssize_t written = ::write(descriptor, piece.data(), piece.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {  // Another process made it non-blocking.
      if (left <= Millis(0)) return Written::not_in_time;
      continue;
    }
    if (written <= 0) return Written::failed;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return Written::all;
}

void use_process_lines(const ProcessLines* lines) noexcept { process_lines.store(lines); }

void write_stderr_line(std::string_view line) noexcept {
  const auto* const log = process_lines.load();
  log != nullptr ? log->write(line) : write_line(line, Millis(0));
}

void say_last_words(std::string_view line) noexcept {
  const auto* const log = process_lines.load();
  if (log == nullptr) return write_line(line, last_words_max);
  log->flush();
  write_line(log->last_line(line), last_words_max);
}

DamageMet::DamageMet(std::string sentence) : sentence_(std::move(sentence)) {
  const std::string* none = nullptr;
  damage_met.compare_exchange_strong(none, &sentence_);
}

DamageMet::~DamageMet() {
  const std::string* mine = &sentence_;
  damage_met.compare_exchange_strong(mine, nullptr);
}

const std::string* DamageMet::sentence() noexcept { return damage_met.load(); }

}  // namespace idem
