#pragma once

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
  double per_second = 50;            ///< Requests, but for those of a race, which go together.
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
  /// Sends one order in the way that all others are sent, and learns which form of keys the API
  /// accepts where the file does not say. The error: what the API answered instead of a success.
  std::expected<void, std::string> calibrate();
  /// A key as its field's value.
  std::string written(const std::string& key) const;
  Request build(const Order& order) const;

  /// Waits for its turn and counts it. Throws RunEnded.
  void take_turn(std::size_t requests = 1);
  std::expected<Connection, std::string> connect() const;
  /// Whether the API accepts a connection, within `most`. The error: of the last attempt.
  std::expected<void, std::string> accepts_connections(std::chrono::milliseconds most) const;
  /// Whether the API answers a GET, within `most`: a port may accept connections before the API is
  /// up. The error: of the last attempt.
  std::expected<void, std::string> answers(std::chrono::milliseconds most) const;
  /// Waits; throws RunEnded where the run is interrupted meanwhile.
  void wait_until(std::chrono::steady_clock::time_point until) const;
  /// In place of the API in a dry run. `bytes`: those that would be sent.
  Answer pretended(const std::string& what, std::string bytes) const;

  /// The number of executions, according to `effects`. The error is a sentence part.
  std::expected<std::int64_t, std::string> effects() const;
  /// Without what a report must not show.
  std::string masked(std::string text) const;

 private:
  using Attempt = std::function<std::expected<void, std::string>()>;
  std::expected<void, std::string> repeat(std::chrono::milliseconds most,
                                          const Attempt& attempt) const;
  std::expected<std::string, std::string> effects_text() const;
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
};

/// Runs a shell command; its output. The error is a sentence.
std::expected<std::string, std::string> run_command(const std::string& command);

}  // namespace idem::check
