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
  money,             ///< Work runs twice or not at all, or a caller gets another request's answer.
  correctness,       ///< A client cannot rely on what it is answered.
  interoperability,  ///< Clients that follow the profile do not get through.
  courtesy,          ///< It works, and costs clients or operators time.
};
std::string_view name_of(Severity severity) noexcept;

/// What a case came to.
enum class Outcome : std::uint8_t { pass, fail, skip };
std::string_view name_of(Outcome outcome) noexcept;

/// A request and what came back. Credentials are masked already.
struct Call {
  std::string what;                   ///< "the first request": for people.
  std::string request;                ///< The bytes that were sent.
  std::string answer;                 ///< The bytes that came back, as far as they came.
  std::string failure;                ///< Why there is no whole answer; empty: there is.
  std::chrono::milliseconds began{};  ///< Since the case began.
  std::chrono::milliseconds took{};
};

/// Why a case exists, the same for all APIs.
struct CaseText {
  std::string_view id;  ///< "race.two"
  Severity severity;
  std::string_view title;   ///< What holds where it passes: "Two at once run once".
  std::string_view reason;  ///< Why clients depend on it.
  std::string_view source;  ///< Document and section.
  std::string_view money;   ///< What the fault means for money.
  std::string_view mend;    ///< How an API mends it.
};

struct CaseResult {
  const CaseText* text = nullptr;
  Outcome outcome = Outcome::skip;
  std::string detail;       ///< One or two sentences: what was seen, or why it was skipped.
  std::vector<Call> calls;  ///< Those that show it; of a pass the first few.
  int times = 0;            ///< How often the case ran.
  int failures = 0;         ///< In how many of them it failed.
};

struct Report {
  std::string target;   ///< The URL.
  std::string profile;  ///< "ietf"
  std::uint64_t seed = 0;
  std::string version;     ///< Of this program.
  std::string started_at;  ///< RFC 3339.
  std::chrono::milliseconds took{};
  std::size_t requests = 0;       ///< Sent in all.
  std::string key_mark;           ///< With which all keys of this run begin.
  std::vector<CaseResult> cases;  ///< In the order of the catalogue.

  bool passes() const noexcept;
};

}  // namespace idem::check
