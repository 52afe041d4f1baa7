#pragma once

#include "check/api.hpp"

#include <future>
#include <set>
#include <span>

namespace idem::check {

/// What a case says at its end.
struct CaseEnd {
  Outcome outcome = Outcome::pass;
  std::string detail{};
};

/// One execution of one case: sends requests, remembers them, and counts what they did.
class CaseRun {
 public:
  using Millis = std::chrono::milliseconds;
  using Sent = std::expected<Answer, std::string>;

  explicit CaseRun(Api& api);

  Api& api() noexcept { return api_; }
  const Spec& spec() const noexcept { return api_.spec(); }
  const Profile& profile() const noexcept { return api_.spec().profile; }

  /// On a connection of its own. `what`: "the retry", for the report.
  Sent send(const Request& request, std::string what);
  /// Sends the same or other requests on separate connections whose last bytes go out together.
  std::vector<Sent> race(std::span<const Request> requests, const std::string& what);
  /// In the background; the connection is up when this returns.
  std::future<Sent> begin(const Request& request, std::string what);
  /// Repeats a request until its answer is no refusal for the moment; the last answer.
  Sent until_settled(const Request& request, const std::string& what, Millis most);
  /// Sends these bytes, and leaves the connection with a reset once the first byte of an answer is
  /// there, or at once.
  std::expected<void, std::string> send_and_leave(std::string_view bytes, std::string what,
                                                  bool after_first_byte);
  /// Through a proxy that delivers the request, reads the answer, and loses it. What the proxy
  /// read.
  Sent send_and_lose_answer(const Request& request, const std::string& what);

  /// The executions since this case began: according to `effects`, or by the different ids and
  /// bodies of the answers, which is a lower bound.
  std::expected<std::int64_t, std::string> executed();
  bool has_effects() const noexcept { return spec().effects.has_value(); }
  /// The id that `resource` points to; empty: the answer has none.
  std::string resource_of(const Answer& answer) const;
  /// A refusal for the moment: the first request still runs.
  bool is_in_flight(const Answer& answer) const;

  static CaseEnd pass(std::string detail = {}) { return {Outcome::pass, std::move(detail)}; }
  static CaseEnd fail(std::string detail) { return {Outcome::fail, std::move(detail)}; }
  static CaseEnd skip(std::string why) { return {Outcome::skip, std::move(why)}; }

  /// Remembers the requests of another one in place of its own.
  void take_over(CaseRun& other) {
    calls_ = std::move(other.calls_);
    is_answered_ = is_answered_ || other.is_answered_;
  }
  /// Whether any request got an answer.
  bool is_answered() const noexcept { return is_answered_; }
  const std::vector<Call>& calls() const noexcept { return calls_; }

 private:
  Sent exchange(const Request& request, const std::string& what);
  void remember(Call call, const Sent& sent);
  /// What an answer says about executions.
  void count(const Sent& sent);
  void forget_most_of_race();
  Millis since_begin() const;

  Api& api_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::expected<std::int64_t, std::string> effects_before_{0};
  std::mutex mutex_;
  std::vector<Call> calls_;
  bool is_answered_ = false;
  std::set<std::string> made_;  ///< Ids, or bodies, of successes.
};

/// "201 {"id":"pay_1"}", short.
std::string shown(const CaseRun::Sent& sent);
/// The same status and the same bytes.
bool is_same_answer(const Answer& a, const Answer& b);
/// Both report the same thing that was made: by its id, or else by the bodies. Whether the bytes
/// are the same too, `replay.identical` alone judges.
bool is_same_result(const CaseRun& run, const Answer& a, const Answer& b);

struct Case {
  CaseText text;
  CaseEnd (*run)(CaseRun& run);
};

/// All of them, in the order of reports.
std::span<const Case> all_cases();

}  // namespace idem::check
