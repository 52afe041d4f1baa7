#include "admin/verdicts.hpp"

#include "core/bytes/rfc3339.hpp"
#include "core/record/stored_fence.hpp"
#include "core/transitions/transitions.hpp"

namespace idem::admin {
namespace {

using Verdict = Resolve::Verdict;

constexpr std::string_view contested =
    "Evidence says that the operation ran, so the record is contested: no order frees it. Complete "
    "it with positive evidence and an answer.";

bool is_contested(const std::optional<Record>& record) { return record && record->is_contested; }

/// The part of the note about a verdict.
std::string note_of(Verdict verdict, const std::optional<Record>& before,
                    const std::optional<Record>& after, Millis grace) {
  std::string note(name_of(verdict));
  if (verdict == Verdict::wrong_fence) {
    note += ", the current attempt has fence " + std::to_string(stored_fence(before->fence()));
  } else if (verdict == Verdict::too_early && !is_contested(before)) {
    note = "too early until " + to_rfc3339(before->locked_until + grace);
  } else if (verdict == Verdict::too_early) {
    note = std::string(name_of(Verdict::by_evidence)) + ", the record is contested";
  }
  const bool is_now = is_contested(after) && !is_contested(before);
  return " (refused: " + note + (is_now ? "; the record is contested from now on" : "") + ")";
}

}  // namespace

std::string counts_from(const Resolve::Reply& reply, const std::optional<Record>& record,
                        Millis grace) {
  if (!record || reply.verdict != Verdict::too_early || record->is_contested) return "";
  return to_rfc3339(record->locked_until + grace);
}

std::string why_refused(const Resolve::Reply& reply, const std::optional<Record>& record,
                        const std::string& counts_from) {
  const std::string state(reply.state ? idem::name_of(*reply.state) : "none");
  const std::string and_contested =
      is_contested(record) ? " " + std::string(contested) : std::string();
  switch (reply.verdict) {
    case Verdict::done:
    case Verdict::not_found:
    case Verdict::superseded:  // Never a reply to these orders.
      break;
    case Verdict::wrong_state:
      return "The record is " + state +
             "; evidence settles unknown records, and a release only a completed one whose stored "
             "answer is a 5xx." +
             and_contested;
    case Verdict::wrong_fence:
      return "The fence is of another attempt than the current one" +
             (record ? ", which has fence " + std::to_string(stored_fence(record->fence())) : "") +
             ".";
    case Verdict::by_evidence:
      return is_contested(record)
                 ? std::string(contested)
                 : "Evidence that the operation ran completed this record; a release would run the "
                   "operation again.";
    case Verdict::missing_response:
      return "To complete a record, give the response for its caller." + and_contested;
    case Verdict::too_early:
      if (!and_contested.empty()) return std::string(contested);
      if (counts_from.empty()) return "Too early: the attempt may still run.";
      return "Too early until " + counts_from +
             ": while the attempt may still run, an absence proves nothing; look again after " +
             counts_from + ".";
  }
  return "";
}

std::string foreseen(const std::optional<Record>& record, const Resolve& order, StoreTime now) {
  std::optional<Record> after = record;
  Resolve tried = order;
  const Verdict verdict = transitions::resolve(after, tried, now).outcome.verdict;
  if (verdict == Verdict::done || verdict == Verdict::not_found) return "";
  return note_of(verdict, record, after, order.grace);
}

std::string foreseen(const std::optional<Record>& record, const CacheBust& order,
                     std::span<const EvidenceEntry> log, StoreTime now) {
  std::optional<Record> after = record;
  const Verdict verdict = transitions::cache_bust(after, order, log, now).outcome.verdict;
  if (verdict == Verdict::done || verdict == Verdict::not_found) return "";
  return note_of(verdict, record, after, {});
}

}  // namespace idem::admin
