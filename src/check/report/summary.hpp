#pragma once

#include "check/verdict.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// What all reports say in the same words. Texts are as they came: nothing is escaped yet.
namespace idem::check {

/// The costliest first.
inline constexpr std::array all_severities{Severity::money, Severity::correctness,
                                           Severity::interoperability, Severity::courtesy};

struct Counts {
  std::size_t pass = 0;
  std::size_t fail = 0;
  std::size_t skip = 0;

  std::size_t all() const noexcept { return pass + fail + skip; }
};
Counts counts_of(const Report& report);
Counts counts_of(const Report& report, Severity severity);

/// The case's text, which it must have.
const CaseText& text_of(const CaseResult& result);

/// The cases that failed, the costliest first, else in the report's order.
std::vector<const CaseResult*> findings_of(const Report& report);
/// The cases that failed in one of several attempts, and are no findings.
std::vector<const CaseResult*> unconfirmed_of(const Report& report);
/// It is one of them.
bool is_unconfirmed(const CaseResult& result) noexcept;

/// What a run found out.
enum class Conclusion : std::uint8_t {
  pass,
  fail,
  incomplete,  ///< The run ended early, without a finding.
  untested,    ///< No case could be judged.
};
Conclusion conclusion_of(const Report& report);
/// "pass", "fail", "incomplete", "not tested"
std::string_view word_of(Conclusion conclusion) noexcept;

/// Cases that were skipped for one reason.
struct SkipGroup {
  std::string reason;  ///< Without the period at its end.
  std::vector<std::string_view> ids;
};
std::vector<SkipGroup> skip_groups_of(const Report& report);

/// "1 finding", "2 findings"
std::string counted(std::size_t number, std::string_view thing);
/// "41 ms", "3.2 s", "2 min 5 s"
std::string duration_text(std::chrono::milliseconds time);
/// "Failed in 3 of 3 attempts."; empty: it did not fail.
std::string attempts_sentence(const CaseResult& result);
/// The cases of the catalogue: those that a run did not choose are not judged.
std::size_t cases_known(const Report& report) noexcept;
/// "http://127.0.0.1:9000 fails the profile ietf: 2 findings (1 money, 1 courtesy) in the 10 of 42
/// cases that could be judged."
std::string verdict_sentence(const Report& report);
/// "Profile ietf, seed 7, key mark idem-check-1, 321 requests, 3.2 s."
std::string run_sentence(const Report& report);

}  // namespace idem::check
