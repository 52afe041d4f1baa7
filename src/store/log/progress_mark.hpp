#pragma once

#include "core/record/store_clock.hpp"
#include "store/log/files.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <expected>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace idem::segments {

/// Up to which commit the log of a shard is durable, in a file that is no part of the log: a log
/// that ends before it has lost its end, which by itself looks like a crash. Each second while
/// there is progress, and at its end, a thread of its own writes it anew, only after the log is
/// durable: so it never claims too much, and a loss after the last mark stays unseen.
///
/// The file has two slots, written in turn, so that a cut write leaves the value before.
class ProgressMark {
 public:
  struct Value {
    std::uint64_t commit = 0;
    StoreTime at{};                         ///< When it was written, by the wall clock.
    std::optional<StoreTime> stopped_at{};  ///< When a process closed the store the last time.
  };

  /// In the shard's folder `shard`.
  ProgressMark(std::string shard, Millis each);
  ~ProgressMark() { stop(); }
  ProgressMark(const ProgressMark&) = delete;
  ProgressMark& operator=(const ProgressMark&) = delete;

  /// Makes the file, or replaces it; durable when it returns. False: see errno.
  [[nodiscard]] static bool make(const std::string& shard, const StoreTag& tag, const Value& value);
  /// Must come before start(), and before a look at the log. The error is a sentence: it is
  /// missing, damaged, or of another log.
  std::expected<void, std::string> read(const StoreTag& tag);
  const Value& value() const noexcept { return value_; }

  /// From now on it writes. The error is a sentence.
  std::expected<void, std::string> start();
  /// The log is durable up to this commit. Costs no call of the system while a mark is due anyway.
  void note(std::uint64_t commit) noexcept;
  /// Writes what it was given last, and ends its thread.
  void stop();
  /// Likewise: this process has closed the store.
  void stop_clean();

 private:
  void serve(const std::stop_token& stop);
  void write(std::uint64_t commit);

  std::string path_;
  Millis each_;
  StoreTag tag_{};
  OwnFile file_{-1};
  Value value_;
  std::uint64_t sequence_ = 0;  ///< Of value_; the newer one of two slots has the higher one.

  std::atomic<std::uint64_t> commit_{0};
  std::atomic<bool> is_idle_{false};
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace idem::segments
