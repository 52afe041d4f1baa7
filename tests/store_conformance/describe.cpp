#include "store_conformance/describe.hpp"
#include "core/bytes/hex.hpp"
#include "core/record/stored_fence.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace idem::test {
namespace {

std::string text(StoreTime moment) { return std::to_string(moment.time_since_epoch().count()); }
std::string text(Millis length) { return std::to_string(length.count()); }
std::string text(State state) {
  return state == State{} ? "no_record" : std::string(name_of(state));
}
std::string text(ReleaseBasis basis) { return std::string(name_of(basis)); }
std::string text(const std::string& value) { return value; }

std::string text(const StoredResponse& response) {
  std::string out = fmt::format("{}{}", response.status, response.body_stored ? "" : " unstored");
  for (const Field& field : response.headers) out += fmt::format(" {}={}", field.name, field.value);
  return out + " [" + response.body + "]";
}

std::string text(const Attempt& attempt) {
  return fmt::format("{}/{}", attempt.fence, to_hex(attempt.token.bytes));
}

template <class T>
std::string text(const std::optional<T>& value) {
  return value ? text(*value) : "-";
}

struct DescribeOutcome {
  std::string operator()(const Execute& x) const {
    return fmt::format("Execute {} {} at '{}'", to_hex(x.id.bytes), text(x.attempt),
                       x.recovery_point);
  }
  std::string operator()(const Replay& x) const {
    return fmt::format("Replay {} {} {}", text(x.response), text(x.completed_at),
                       text(x.expires_at));
  }
  std::string operator()(const InProgress& x) const {
    return fmt::format("InProgress {} {} of {} until {}{}", text(x.lease_remaining),
                       to_hex(x.id.bytes), stored_fence(x.fence), text(x.locked_until),
                       x.is_stored ? ", stored" : "");
  }
  std::string operator()(const KeyMisuse& x) const { return "KeyMisuse " + text(x.state); }
  std::string operator()(const Unknown& x) const {
    return fmt::format("Unknown {} {}", text(x.since), text(x.reconcile_in));
  }
  std::string operator()(const Expired& x) const { return "Expired " + text(x.completed_at); }
  std::string operator()(const Pending&) const { return "Pending"; }
  std::string operator()(const QuotaExceeded& x) const {
    return "QuotaExceeded " + text(x.retry_after);
  }
};

std::string text(const EvidenceEntry& entry) {
  return fmt::format("{} {}|{}|{} {}->{} {} {} {}", stored_fence(entry.fence), entry.source,
                     entry.evidence, entry.reason, text(entry.before), text(entry.after),
                     entry.applied, text(entry.observed_at), text(entry.recorded_at));
}

struct DescribeReply {
  std::string operator()(const ReserveOutcome& x) const { return test::describe(x); }
  std::string operator()(const OwnerReply& x) const { return test::describe(x); }
  std::string operator()(const std::optional<Record>& x) const { return test::describe(x); }
  std::string operator()(const std::optional<Claimed>& x) const {
    if (!x) return "nothing to claim";
    return fmt::format("Claimed {} {} {} {} [{}] '{}'", to_hex(x->id.bytes), x->scope, x->operation,
                       text(x->attempt), x->request, x->recovery_point);
  }
  std::string operator()(const Resolve::Reply& x) const {
    return fmt::format("resolve {} {}", static_cast<int>(x.verdict), text(x.state));
  }
  std::string operator()(const std::vector<Record>& x) const {
    std::string out = fmt::format("{} records", x.size());
    for (const Record& record : x) out += "\n  " + test::describe(record);
    return out;
  }
  /// In any order: which of the due ones comes first is the store's choice.
  std::string operator()(const std::vector<LifecycleStep>& x) const {
    std::vector<std::string> lines;
    for (const LifecycleStep& step : x) {
      lines.push_back(fmt::format("{} {}->{} after {} ms", to_hex(step.id.bytes), text(step.from),
                                  text(step.to), step.late.count()));
    }
    std::ranges::sort(lines);
    return fmt::format("{} steps {}", lines.size(), fmt::join(lines, ", "));
  }
  std::string operator()(const AdoptRoutes::Reply& x) const {
    return fmt::format("generation {} {}", x.generation, x.why_not);
  }
  std::string operator()(const AppendLine::Reply& x) const {
    return fmt::format("appended={} last={} at {}", x.appended, x.last, text(x.now));
  }
  std::string operator()(const ReadLines::Reply& x) const {
    std::string out = fmt::format("{} lines of {} at {}", x.lines.size(), x.last, text(x.now));
    for (const JournalLine& line : x.lines) {
      out += fmt::format("\n  {} {} {}{}", line.seq, text(line.at), line.bytes,
                         line.is_damaged ? " damaged" : "");
    }
    return out;
  }
  std::string operator()(const std::vector<JournalSummary>& x) const {
    std::string out = fmt::format("{} journals", x.size());
    for (const JournalSummary& one : x)
      out += fmt::format(" {}:{}/{}", one.name, one.last, one.bytes);
    return out;
  }
  std::string operator()(const DropJournal::Reply& x) const {
    return fmt::format("dropped={} last={}", x.dropped, x.last);
  }
  std::string operator()(const PutRecord::Reply& x) const {
    return fmt::format("put={} lines={}", x.put, x.evidence);
  }
  std::string operator()(const std::vector<EvidenceEntry>& x) const {
    std::string out = fmt::format("{} entries", x.size());
    for (const EvidenceEntry& entry : x) out += "\n  " + text(entry);
    return out;
  }
  /// Without what is counted since the store was opened.
  std::string operator()(const Census& x) const {
    return fmt::format("{} oldest={} at {}", fmt::join(x.by_state, "/"), text(x.oldest_unknown),
                       text(x.now));
  }
};

}  // namespace

std::string describe(const Record& r) {
  return fmt::format(
      "{} {} {} of {} {}:{} {} {} '{}' until={} dispatched={} policy={} keep={}/{} at='{}' "
      "request={} "
      "response={} basis={} error={} reconcile={}/{} ref={} created={} changed={} completed={} "
      "expires={} tombstone={} contested={} asks='{}' by='{}'",
      to_hex(r.id.bytes), r.scope, r.operation, r.generation, r.fingerprint.version,
      to_hex(r.fingerprint.digest).substr(0, 4), text(r.state), text(r.attempt), r.owner,
      text(r.locked_until), r.dispatched, static_cast<int>(r.lease_policy), text(r.retention),
      text(r.tombstone), r.recovery_point, text(r.stored_request), text(r.response),
      text(r.release_basis), r.last_error_code, text(r.reconcile_after), r.reconcile_attempts,
      r.upstream_reference, text(r.created_at), text(r.changed_at), text(r.completed_at),
      text(r.expires_at), text(r.tombstone_until), r.is_contested, r.provider,
      hex_of(r.sealed_key));
}

std::string describe(const std::optional<Record>& record) {
  return record ? describe(*record) : "no record";
}

std::string describe(const ReserveOutcome& outcome) {
  return std::visit(DescribeOutcome(), outcome);
}

std::string describe(const OwnerReply& reply) {
  static constexpr const char* verdicts[] = {"done", "settled", "stale"};
  return fmt::format("{} {} {}", verdicts[static_cast<int>(reply.verdict)], text(reply.state),
                     text(reply.expires_at));
}

std::string describe(const StoreResult& result) {
  if (!result) {
    return fmt::format("error {}: {}", static_cast<int>(result.error().code),
                       result.error().detail);
  }
  return std::visit(DescribeReply(), *result);
}

}  // namespace idem::test
