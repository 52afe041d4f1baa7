#pragma once

#include "core/exchange/outage.hpp"

#include <idem/worker_limits.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

/// Counts and states of the services outside: the upstream, the authoriser, providers.
namespace idem::metrics {

/// The result of a request to the upstream.
enum class Forwarded : std::uint8_t {
  answered,     ///< A final answer's head came, whatever its status.
  not_reached,  ///< No byte of the request was sent.
  timeout,
  closed,     ///< Before an answer.
  malformed,  ///< The answer is no HTTP.
  cut,        ///< Within the answer's body.
  unframed,   ///< A cut answer could not be distinguished from a whole one.
};
inline constexpr std::size_t forwarded_count = 7;
std::string_view name_of(Forwarded result) noexcept;

/// Why there was no connection.
enum class NotReached : std::uint8_t { resolve, connect, timeout, tls, closed };
inline constexpr std::size_t not_reached_count = 5;
std::string_view name_of(NotReached reason) noexcept;

/// The result of a question to the authoriser.
enum class Authorized : std::uint8_t { allowed, refused, failed };
inline constexpr std::size_t authorized_count = 3;
std::string_view name_of(Authorized result) noexcept;

/// Whether a service outside answers. Safe from any thread; locks only while the service fails and
/// when it recovers.
class Availability {
 public:
  struct Seen {
    bool is_down = false;
    std::optional<MonotonicTime> last_answer{};
    std::uint64_t failures = 0;  ///< In a row.
    std::string reason{};        ///< Of the last failure; empty: there was none.
    std::string detail{};
    MonotonicTime failed_at{};  ///< The last one.
  };

  /// Notes an answer; returns the line to log, if any.
  std::optional<OutageLines::Line> answered(MonotonicTime now);
  /// Notes a failure, likewise. `is_proof`: this failure alone means that the service is down;
  /// otherwise limits::breaker_failures in a row do.
  std::optional<OutageLines::Line> failed(MonotonicTime now, std::string_view reason,
                                          std::string detail, bool is_proof);
  Seen seen() const;

 private:
  static constexpr Millis::rep never = -1;

  // To the second, so that not every success on every thread writes it.
  std::atomic<Millis::rep> last_answer_{never};
  std::atomic<bool> is_failing_{false};
  mutable std::mutex mutex_;
  OutageLines lines_{limits::outage_line_interval};
  Seen seen_;
};

/// The finding of a provider's answer.
enum class Answered : std::uint8_t { found, failed, not_there, later };
inline constexpr std::size_t answered_count = 4;
std::string_view name_of(Answered result) noexcept;

/// Why a question to a provider was not answered.
enum class Unanswered : std::uint8_t {
  connect,
  tls,
  timeout,
  too_large,
  protocol,
  refused,
  status
};
inline constexpr std::size_t unanswered_count = 7;
std::string_view name_of(Unanswered reason) noexcept;

/// The counts of one provider. Any thread counts and reads: a question lasts milliseconds, so the
/// cost of a shared cache line does not matter.
struct ProviderCounts {
  std::array<std::atomic<std::uint64_t>, answered_count> answers{};
  std::array<std::atomic<std::uint64_t>, unanswered_count> failures{};
  std::atomic<bool> is_left_alone{
      false};  ///< Not asked after failures in a row, but for one trial question.
  Availability availability;
};

/// What became of a recorded span.
enum class Spanned : std::uint8_t {
  sent,
  queue_full,  ///< Too many waited.
  refused,     ///< By the collector.
  not_sent,    ///< The collector did not answer, or asked to try again, too often.
};
inline constexpr std::size_t spanned_count = 4;
std::string_view name_of(Spanned result) noexcept;

/// The counts of the spans of this process. Any thread counts and reads.
struct SpanCounts {
  std::array<std::atomic<std::uint64_t>, spanned_count> results{};
  Availability collector;

  void add(Spanned result, std::uint64_t spans) noexcept {
    results[static_cast<std::size_t>(result)].fetch_add(spans, std::memory_order_relaxed);
  }
};

}  // namespace idem::metrics
