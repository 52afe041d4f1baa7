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

/// What a run came to. An API that passes may still have findings.
enum class Conclusion : std::uint8_t {
  pass,
  fail,
  untested,  ///< No case ran: nothing is known.
};
Conclusion conclusion_of(const Report& report);
/// "pass", "fail", "not tested"
std::string_view word_of(Conclusion conclusion) noexcept;

/// Cases that were skipped for the same reason.
struct SkipGroup {
  std::string reason;  ///< Without the period at its end.
  std::vector<std::string_view> ids;
};
std::vector<SkipGroup> skip_groups_of(const Report& report);

/// "1 finding", "2 findings"
std::string counted(std::size_t number, std::string_view thing);
/// "41 ms", "3.2 s", "2 min 5 s"
std::string duration_text(std::chrono::milliseconds time);
/// "It failed in 3 of 3 runs."; empty: it did not fail.
std::string runs_sentence(const CaseResult& result);
/// "http://127.0.0.1:9000 fails the profile ietf: 2 findings (1 money, 1 courtesy), 7 cases passed,
/// 1 was skipped."
std::string verdict_sentence(const Report& report);

}  // namespace idem::check
