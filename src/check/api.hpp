#pragma once

#include "check/secrets.hpp"
#include "check/spec.hpp"
#include "check/verdict.hpp"
#include "check/wire/connection.hpp"

#include <atomic>
#include <functional>
#include <mutex>
#include <random>

namespace idem::check {

/// How a run treats the API.
struct Manners {
  double per_second = 50;            ///< Requests, but for those of a race; 0: no limit.
  std::size_t requests_max = 5'000;  ///< Of the whole run.
  bool insecure = false;             ///< Accepts any certificate.
  /// Shows requests instead of sending them.
  std::function<void(const std::string& what, const std::string& bytes)> dry_run{};
  /// Asked before each request; true: the run ends here. Empty: never.
  std::function<bool()> is_interrupted{};
};

/// The run must end: it may send no more requests, or was interrupted.
struct RunEnded {
  std::string why;
};

/// One operation that a request asks for, and its key.
struct Order {
  std::string key;
  std::string amount;  ///< A JSON number as text.
  std::string unique;
  Variation changes{};
};

/// The API refuses requests for their number, and goes on to do so. A case that meets it cannot
/// judge.
struct RateLimited {
  std::string why;
};

/// By what the answers to two operations differ.
enum class Difference : std::uint8_t {
  none,
  body,  ///< By more than what their requests differ by.
  id,    ///< By the id at `resource`, or by Location.
};

/// The API under test. Safe from any thread.
class Api {
 public:
  Api(const Spec& spec, Origin origin, Manners manners, std::uint64_t seed);

  const Spec& spec() const noexcept { return spec_; }
  const Origin& origin() const noexcept { return origin_; }
  /// With which each key of this run begins.
  const std::string& key_mark() const noexcept { return mark_; }
  KeyForm key_form() const noexcept { return key_form_.load(); }
  std::size_t requests() const noexcept { return requests_.load(); }
  bool insecure() const noexcept { return manners_.insecure; }
  bool is_dry() const noexcept { return static_cast<bool>(manners_.dry_run); }

  /// New values.
  Order order();
  std::string new_key();
  /// Sends two orders in the way that all others are sent, and learns which form of keys the API
  /// accepts where the file does not say, by what answers differ, and how late `effects` count. The
  /// error: what the API answered instead of a success.
  std::expected<void, std::string> calibrate();
  Difference difference() const noexcept { return difference_; }
  /// The id of what was created: at `resource`, or else Location; empty: the answer has none.
  std::string id_of(const Answer& answer) const;
  /// Whether Location is the id although the file does not say so.
  bool has_location_as_id() const noexcept { return has_location_as_id_; }
  /// A key as its field's value.
  std::string written(const std::string& key) const;
  Request build(const Order& order) const;
  /// With the values of this order.
  static std::string filled(std::string text, const Order& order);

  /// Waits for its turn and counts it. Throws RunEnded.
  void take_turn(std::size_t requests = 1);
  /// Halves the rate of the run, and lets nobody send for so long.
  void slow_down(std::chrono::milliseconds pause);
  std::expected<Connection, std::string> connect() const;
  /// Whether the API accepts a connection, within `most`. The error: of the last attempt.
  std::expected<void, std::string> accepts_connections(std::chrono::milliseconds most) const;
  /// Whether the API answers a GET, within `most`: a port may accept connections before the API is
  /// up. The error: of the last attempt.
  std::expected<void, std::string> answers(std::chrono::milliseconds most) const;
  /// Throws RunEnded where the run is interrupted: a command that it ended says nothing.
  void end_if_interrupted() const;
  /// Waits; throws RunEnded where the run is interrupted meanwhile.
  void wait_until(std::chrono::steady_clock::time_point until) const;
  /// In place of the API in a dry run. `bytes`: those that would be sent.
  Answer pretended(const std::string& what, std::string bytes) const;

  /// The number of executions, according to `effects`, once it counts all that was sent before: it
  /// takes a turn, and waits where the number is known to be late. The error is a sentence part.
  std::expected<std::int64_t, std::string> effects();
  /// The same as it is now, for a caller that waits for it: twenty times a second at most.
  std::expected<std::int64_t, std::string> effects_now() const;
  /// Whether the number counted each execution before its answer came.
  bool has_exact_effects() const;
  /// A request has ended: with an answer, or in a way that may leave an operation running.
  void note_end(bool is_answered);
  /// When the last request ended without an answer.
  std::chrono::steady_clock::time_point last_left() const { return last_left_.load(); }
  const Secrets& secrets() const noexcept { return secrets_; }

 private:
  using Attempt = std::function<std::expected<void, std::string>()>;
  std::expected<void, std::string> repeat(std::chrono::milliseconds most,
                                          const Attempt& attempt) const;
  struct Tried {
    Order order;
    Answer answer;
  };
  std::expected<Tried, std::string> try_order();
  std::expected<Answer, std::string> send_once(const Request& request);
  bool takes_next_key_form();
  void choose_mark();
  void learn_difference(const Tried& one, const Tried& other);
  std::expected<void, std::string> learn_lag(std::int64_t before);
  std::expected<std::string, std::string> effects_text() const;
  std::chrono::milliseconds settle() const;
  bool is_interrupted() const { return manners_.is_interrupted && manners_.is_interrupted(); }

  const Spec& spec_;
  std::atomic<KeyForm> key_form_;
  Origin origin_;
  Manners manners_;
  std::string mark_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::uint64_t made_ = 0;
  std::chrono::steady_clock::time_point next_turn_{};
  std::atomic<std::size_t> requests_{0};
  std::atomic<double> per_second_;
  std::uint32_t run_;  ///< Of the mark.
  Secrets secrets_;

  Difference difference_ = Difference::none;
  bool has_location_as_id_ = false;
  std::chrono::milliseconds lag_{0};  ///< By which `effects` counted later than the answer came.
  std::int64_t effects_seen_ = -1;
  std::chrono::steady_clock::time_point effects_changed_{};
  std::atomic<std::chrono::steady_clock::time_point> last_end_{};
  std::atomic<std::chrono::steady_clock::time_point> last_left_{};
};

}  // namespace idem::check
