#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What `idem check` finds out about an API from outside.
namespace idem::check {

/// What a fault costs.
enum class Severity : std::uint8_t {
  money,             ///< The API executes an operation twice or never, or gives a caller the answer
                     ///< to another request.
  correctness,       ///< A client cannot rely on the answer.
  interoperability,  ///< The API refuses clients that follow the profile.
  courtesy,          ///< The API is safe, and costs clients or operators time.
};
std::string_view name_of(Severity severity) noexcept;

/// What a case came to.
enum class Outcome : std::uint8_t { pass, fail, skip };
std::string_view name_of(Outcome outcome) noexcept;

/// A request and what came back. Credentials are masked already.
struct Call {
  std::string what;                   ///< "the first request": for people.
  std::string request;                ///< The bytes that were sent.
  std::string answer;                 ///< What came back, as far as it came; chunks are decoded.
  std::string failure;                ///< Why there is no whole answer; empty: there is.
  std::chrono::milliseconds began{};  ///< Since the case began.
  std::chrono::milliseconds took{};
};

/// Why a case exists, the same for all APIs.
struct CaseText {
  std::string_view id;  ///< "race.two"
  Severity severity;
  std::string_view title;   ///< What holds where it passes: "Keys are case-sensitive".
  std::string_view reason;  ///< Why clients depend on it.
  std::string_view source;  ///< Document and section.
  std::string_view money;   ///< The impact: what the fault means for money.
  std::string_view mend;    ///< The fix.
};

struct CaseResult {
  const CaseText* text = nullptr;
  Outcome outcome = Outcome::skip;
  std::string detail;       ///< One or two sentences: what was seen, or why it was skipped.
  std::vector<Call> calls;  ///< Those that show it; of a pass the first few.
  int times = 0;            ///< How often the case ran.
  int failures = 0;         ///< In how many of them it failed.
  bool is_certain = false;  ///< Its one failure is a finding: `effects` have counted it.
};

struct Report {
  std::string target;    ///< The URL.
  std::string config{};  ///< The configuration file, as it was named; empty: none.
  std::string profile;   ///< "ietf"
  std::uint64_t seed = 0;
  std::string version;     ///< Of this program.
  std::string started_at;  ///< RFC 3339.
  std::chrono::milliseconds took{};
  std::size_t requests = 0;       ///< Sent in all.
  std::string key_mark;           ///< With which all keys of this run begin.
  std::vector<CaseResult> cases;  ///< In the order of the catalogue.
  std::size_t cases_known = 0;    ///< In the catalogue; `cases` may be a choice of them.
  std::string ended_early{};      ///< Why the run ended before its last case; empty: it did not.

  /// No case failed, and the run was not cut short.
  bool passes() const noexcept;
};

}  // namespace idem::check
