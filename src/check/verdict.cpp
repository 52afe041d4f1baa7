#include "check/verdict.hpp"

#include <algorithm>

namespace idem::check {

std::string_view name_of(Severity severity) noexcept {
  switch (severity) {
    case Severity::money:
      return "money";
    case Severity::correctness:
      return "correctness";
    case Severity::interoperability:
      return "interoperability";
    case Severity::courtesy:
      return "courtesy";
  }
  return "";
}

std::string_view name_of(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::pass:
      return "pass";
    case Outcome::fail:
      return "fail";
    case Outcome::skip:
      return "skip";
  }
  return "";
}

bool Report::passes() const noexcept {
  return ended_early.empty() && std::ranges::none_of(cases, [](const CaseResult& one) {
           return one.outcome == Outcome::fail;
         });
}

}  // namespace idem::check
