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

/// What is counted and remembered about those outside: the upstream, the authoriser, providers.
namespace idem::metrics {

/// What became of a request to the upstream.
enum class Forwarded : std::uint8_t {
  answered,     ///< A final answer's head came, whatever its status.
  not_reached,  ///< No byte of the request was sent.
  timeout,
  closed,     ///< Before an answer.
  malformed,  ///< What came is no HTTP.
  cut,        ///< Within the answer's body.
  unframed,   ///< The answer's end cannot be told from its being cut.
};
inline constexpr std::size_t forwarded_count = 7;
std::string_view name_of(Forwarded result) noexcept;

/// Why there was no connection.
enum class NotReached : std::uint8_t { resolve, connect, timeout, tls, closed };
inline constexpr std::size_t not_reached_count = 5;
std::string_view name_of(NotReached reason) noexcept;

/// What the authoriser said.
enum class Authorized : std::uint8_t { allowed, refused, failed };
inline constexpr std::size_t authorized_count = 3;
std::string_view name_of(Authorized result) noexcept;

/// How somebody outside has answered lately. Safe from any thread; takes a lock only while it fails
/// and when it recovers.
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

  /// After an answer: the line to write, if any.
  std::optional<OutageLines::Line> answered(MonotonicTime now);
  /// After a failure, likewise. `is_proof`: it is down by this one alone; otherwise only after
  /// limits::breaker_failures in a row.
  std::optional<OutageLines::Line> failed(MonotonicTime now, std::string_view reason,
                                          std::string detail, bool is_proof);
  Seen seen() const;

 private:
  static constexpr Millis::rep never = -1;

  // To the second, so that threads which all succeed do not all write it.
  std::atomic<Millis::rep> last_answer_{never};
  std::atomic<bool> is_failing_{false};
  mutable std::mutex mutex_;
  OutageLines lines_{limits::outage_line_interval};
  Seen seen_;
};

/// What a provider that was asked did.
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

/// One provider's. Any thread counts and reads: a question takes milliseconds, so that two threads
/// which write one line of the cache cost nothing beside it.
struct ProviderCounts {
  std::array<std::atomic<std::uint64_t>, answered_count> answers{};
  std::array<std::atomic<std::uint64_t>, unanswered_count> failures{};
  std::atomic<bool> is_left_alone{false};  ///< After failures in a row; tried by one question.
  Availability availability;
};

}  // namespace idem::metrics
