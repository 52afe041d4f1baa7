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
  bool is_certain = false;  ///< Of a failure: it need not come again to be one.
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

  /// On a connection of its own. `what`: "the retry", for the report. Where the API limits the
  /// rate, it waits as the API advises and sends again, some times. Throws RateLimited.
  Sent send(const Request& request, std::string what);
  /// The same once: for a request whose refusal is judged.
  Sent send_once(const Request& request, const std::string& what);
  /// Sends the same or other requests on separate connections whose last bytes go out together.
  std::vector<Sent> race(std::span<const Request> requests, const std::string& what);
  /// In the background; the request is sent when this returns, so that others are later.
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

  /// The executions since this case began: according to `effects`, or by the different ids of the
  /// answers, which is a lower bound. Different bodies alone say nothing. The error: why the number
  /// is not known.
  std::expected<std::int64_t, std::string> executed();
  /// What `effects` have counted until now, for a caller that waits: 20 times a second at most.
  std::expected<std::int64_t, std::string> executed_so_far() const;
  /// Whether one look at `effects` convicts: they count at once, and no operation of an earlier
  /// case can have been running when this one began.
  bool counts_exactly() const { return is_begun_clean_ && api_.has_exact_effects(); }
  bool has_location_as_id() const noexcept { return api_.has_location_as_id(); }
  bool has_effects() const noexcept { return spec().effects.has_value(); }
  /// The id at `resource`, or Location; empty: the answer has none.
  std::string resource_of(const Answer& answer) const { return api_.id_of(answer); }
  /// Whether this answer to another operation is the result of the first one: according to
  /// `effects`, which count the other one too, or else by ids or bodies. None: it cannot be known.
  std::optional<bool> is_result_of_first(const Answer& first, const Answer& other);
  /// A refusal for the moment: the first request still runs.
  bool is_in_flight(const Answer& answer) const;

  static CaseEnd pass(std::string detail = {}) {
    return {.outcome = Outcome::pass, .detail = std::move(detail)};
  }
  static CaseEnd fail(std::string detail) {
    return {.outcome = Outcome::fail, .detail = std::move(detail)};
  }
  static CaseEnd skip(std::string why) {
    return {.outcome = Outcome::skip, .detail = std::move(why)};
  }

  /// Remembers the requests of another one in place of its own.
  void take_over(CaseRun& other) {
    calls_ = std::move(other.calls_);
    is_answered_ = is_answered_ || other.is_answered_;
  }
  /// Whether any request got an answer.
  bool is_answered() const noexcept { return is_answered_; }
  const std::vector<Call>& calls() const noexcept { return calls_; }

 private:
  /// `on_sent`: the API has the whole request, unless it was not sent.
  Sent exchange(const Request& request, const std::string& what,
                const std::function<void()>& on_sent = {});
  void remember(Call call, Sent& sent);
  /// What an answer says about executions.
  void count(const Sent& sent);
  void forget_most_of_race();
  Millis since_begin() const;

  Api& api_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  const bool is_begun_clean_;
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
