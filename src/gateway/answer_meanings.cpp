#include "gateway/answer_meanings.hpp"

namespace idem::gateway {
namespace {

std::string_view outcome_of(Disposition meaning) noexcept {
  switch (meaning) {
    case Disposition::store:
      return "stored";
    case Disposition::release_proven:
    case Disposition::release_declared:
      return "released";
    case Disposition::unknown:
      return "unknown";
  }
  return "unknown";
}

DecidedBy decided_by(const AnswerFacts& facts, const AnswerPolicy& policy) {
  const Disposition by_preset = disposition(facts, {.preset = policy.preset});
  // A preset alone never proves anything.
  if (by_preset == Disposition::release_proven) return DecidedBy::proof;
  const bool has_rule = policy.statuses.contains(facts.status);
  return has_rule || disposition(facts, policy) != by_preset ? DecidedBy::route : DecidedBy::preset;
}

}  // namespace

std::vector<AnswerMeaning> meanings_of(const AnswerPolicy& policy, bool retry_after) {
  constexpr int first = 200;
  constexpr int end = 600;
  std::vector<AnswerMeaning> all;
  for (int status = first; status < end; ++status) {
    AnswerFacts facts;
    facts.status = status;
    facts.has_retry_after = retry_after;
    const auto outcome = outcome_of(disposition(facts, policy));
    const DecidedBy by = decided_by(facts, policy);
    if (!all.empty() && all.back().outcome == outcome && all.back().by == by) {
      all.back().last = status;
    } else {
      all.push_back({status, status, outcome, by});
    }
  }
  return all;
}

}  // namespace idem::gateway
