#include "admin/json_members.hpp"
#include "admin/keys_json.hpp"
#include "admin/status.hpp"
#include "core/bytes/rfc3339.hpp"
#include "json/writer.hpp"

#include <idem/worker_limits.hpp>

#include <algorithm>
#include <set>

namespace idem::admin {
namespace {

using json::Writer;
using metrics::Availability;

std::int64_t whole_seconds(std::chrono::duration<double> time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

Millis oldest_unknown(const Census& census) {
  return census.oldest_unknown ? census.now - *census.oldest_unknown : Millis(0);
}

std::string number_of(std::size_t count, const char* one, const char* several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

/// The circuit breaker's own sentence already begins so.
std::string store_down(const std::string& error) {
  static constexpr std::string_view sentence = "the store does not answer: ";
  return error.starts_with(sentence) ? error : std::string(sentence) + error;
}

void add_availability(std::vector<Trouble>& troubles, const char* code, const std::string& who,
                      const Availability::Seen& seen) {
  troubles.push_back({code, who + " does not answer: " + seen.reason +
                                (seen.detail.empty() ? "" : ", " + seen.detail)});
}

void add_unsettled(std::vector<Trouble>& troubles, const Status::Records& records) {
  const std::string at_least = records.seen_all ? "" : "at least ";
  if (records.contested > 0) {
    troubles.push_back(
        {"contested",
         (records.seen_all_completed ? at_least : "at least ") +
             number_of(records.contested, "record is", "records are") +
             " contested: evidence says otherwise; look with: idem keys list --contested"});
  }
  if (records.for_people > 0) {
    troubles.push_back({"unknown_for_people",
                        at_least +
                            number_of(records.for_people, "unknown record is",
                                      "unknown "
                                      "records are") +
                            " left to operators; look with: idem keys list --state unknown"});
  }
  if (records.leases_overdue > 0) {
    troubles.push_back({"leases_overdue",
                        at_least + number_of(records.leases_overdue, "lease has", "leases have") +
                            " ended and no process sweeps; is a gateway or worker running?"});
  }
}

void add_records(std::vector<Trouble>& troubles, const Status& status) {
  if (status.records) add_unsettled(troubles, *status.records);
  if (!status.census) return;
  const Millis age = oldest_unknown(*status.census);
  if (age > limits::unknown_is_old) {
    troubles.push_back({"unknown_old", "a record has been unknown for " +
                                           std::to_string(seconds_of(age)) + " seconds"});
  }
}

void add_messages(std::vector<Trouble>& troubles, const metrics::Gauges& gauges) {
  if (!gauges.messages) return;
  for (const MessageCount& count : *gauges.messages) {
    const bool is_dead = count.state == MessageState::dead;
    if (is_dead && count.messages > 0) {
      troubles.push_back({"dead_letters", number_of(count.messages, "dead letter", "dead letters") +
                                              " to " + count.destination +
                                              "; look with: idem dlq list"});
    }
    if (!is_dead && count.oldest_age > limits::unknown_is_old) {
      troubles.push_back({"outbox_behind", "a message to " + count.destination +
                                               " has been waiting for " +
                                               std::to_string(seconds_of(count.oldest_age)) +
                                               " seconds; look with: idem outbox list"});
    }
  }
}

void write_availability(Writer& out, const Availability::Seen& seen, bool is_up,
                        MonotonicTime now) {
  out.flag("up", is_up);
  write_optional(
      out, "last_answer_seconds",
      seen.last_answer ? std::optional(seconds_of(now - *seen.last_answer)) : std::nullopt);
  out.member("failures", seen.failures);
  out.name("last_failure");
  if (seen.reason.empty()) return out.null();
  out.begin_object();
  out.member("reason", seen.reason);
  out.member("detail", seen.detail);
  out.member("seconds", seconds_of(now - seen.failed_at));
  out.end_object();
}

void write_one(Writer& out, const char* name, bool is_there, const Availability& availability,
               MonotonicTime now) {
  out.name(name);
  if (!is_there) return out.null();
  const Availability::Seen seen = availability.seen();
  out.begin_object();
  write_availability(out, seen, !seen.is_down, now);
  out.end_object();
}

void write_providers(Writer& out, const metrics::Registry& registry, MonotonicTime now) {
  out.name("providers");
  out.begin_array();
  for (const auto& [name, counts] : registry.providers()) {
    out.begin_object();
    out.member("name", name);
    write_availability(out, counts->availability.seen(), !counts->is_left_alone, now);
    out.end_object();
  }
  out.end_array();
}

void write_restore(Writer& out, const std::optional<RestoreNote>& restored) {
  out.name("restored");
  if (!restored) return out.null();
  out.begin_object();
  out.name("copied_at");
  if (restored->copied_at) {
    out.text(to_rfc3339(*restored->copied_at));
  } else {
    out.null();
  }
  out.member("restored_at", to_rfc3339(restored->restored_at));
  out.member("in_progress", restored->in_progress);
  out.member("pending", restored->pending);
  out.member("failed_retryable", restored->failed_retryable);
  out.name("first");
  out.begin_array();
  for (const RecordId& id : restored->first) out.text(to_hex(id.bytes));
  out.end_array();
  out.end_object();
}

void write_store(Writer& out, const Status& status) {
  out.name("store");
  out.begin_object();
  out.flag("up", status.store_error.empty() && status.gauges.store_answers);
  if (!status.store_error.empty()) out.member("detail", status.store_error);
  out.name("keys");
  if (!status.census) {
    out.null();
  } else {
    write_counts(out, *status.census);
  }
  write_restore(out, status.restored);
  out.end_object();
}

/// null: the store did not answer, so nothing is known.
void write_count(Writer& out, const char* name, const std::optional<Status::Records>& records,
                 std::size_t Status::Records::* count) {
  out.name(name);
  if (records) {
    out.number((*records).*count);
  } else {
    out.null();
  }
}

void write_unsettled(Writer& out, const Status& status) {
  out.name("unknown");
  if (!status.census) {
    out.null();
  } else {
    out.begin_object();
    out.member("count", status.census->by_state[static_cast<std::size_t>(State::unknown)]);
    out.member("oldest_seconds", seconds_of(oldest_unknown(*status.census)));
    write_count(out, "for_people", status.records, &Status::Records::for_people);
    out.end_object();
  }
  write_count(out, "contested", status.records, &Status::Records::contested);
  write_count(out, "leases_overdue", status.records, &Status::Records::leases_overdue);
  out.flag("seen_all", status.records && status.records->seen_all);
  out.flag("seen_all_completed", status.records && status.records->seen_all_completed);
  out.member("unsettled_attempts", status.gauges.unsettled_attempts);
}

void write_outbox(Writer& out, const metrics::Gauges& gauges) {
  out.name("outbox");
  if (!gauges.messages) return out.null();
  std::set<std::string> names(gauges.destinations.begin(), gauges.destinations.end());
  for (const MessageCount& count : *gauges.messages) names.insert(count.destination);
  out.begin_array();
  for (const std::string& name : names) {
    std::uint64_t waiting = 0;
    std::uint64_t dead = 0;
    Millis oldest{};
    for (const MessageCount& count : *gauges.messages) {
      if (count.destination != name) continue;
      (count.state == MessageState::dead ? dead : waiting) += count.messages;
      if (count.state != MessageState::dead) oldest = count.oldest_age;
    }
    out.begin_object();
    out.member("destination", name);
    out.member("waiting", waiting);
    out.member("oldest_seconds", seconds_of(oldest));
    out.member("dead", dead);
    out.end_object();
  }
  out.end_array();
}

}  // namespace

std::vector<Trouble> troubles_of(const Status& status, metrics::Registry& registry) {
  std::vector<Trouble> troubles;
  if (!status.store_error.empty()) {
    troubles.push_back({"store_down", store_down(status.store_error)});
  } else if (!status.gauges.store_answers) {
    troubles.push_back(
        {"store_down",
         "the store failed several times in a row; calls are refused until it answers"});
  }
  const auto upstream = registry.upstream().seen();
  if (registry.has_upstream() && upstream.is_down) {
    add_availability(troubles, "upstream_down", "the upstream", upstream);
  }
  const auto authorizer = registry.authorizer().seen();
  if (registry.has_authorizer() && authorizer.is_down) {
    add_availability(troubles, "authorizer_down", "the authoriser", authorizer);
  }
  for (const auto& [name, counts] : registry.providers()) {
    const auto seen = counts->availability.seen();
    if (counts->is_left_alone || seen.is_down) {
      add_availability(troubles, "provider_down", "provider " + name, seen);
    }
  }
  add_records(troubles, status);
  if (const auto age = registry.reap_age(); age && *age > limits::reap_is_late) {
    troubles.push_back(
        {"reap_behind", "records past their retention have been waiting for the reaper for " +
                            std::to_string(whole_seconds(*age)) + " seconds"});
  }
  if (status.gauges.unsettled_attempts > 0) {
    troubles.push_back(
        {"unsettled", number_of(status.gauges.unsettled_attempts, "outcome", "outcomes") +
                          " could not be written to the store yet"});
  }
  add_messages(troubles, status.gauges);
  return troubles;
}

std::string status_page(const Status& status, metrics::Registry& registry, MonotonicTime now) {
  const auto troubles = troubles_of(status, registry);
  Writer out;
  out.begin_object();
  out.flag("ok", troubles.empty());
  out.name("troubles");
  out.begin_array();
  for (const Trouble& one : troubles) {
    out.begin_object();
    out.member("code", one.code);
    out.member("detail", one.detail);
    out.end_object();
  }
  out.end_array();
  out.member("version", registry.version());
  out.flag("draining", status.draining);
  write_store(out, status);
  write_one(out, "upstream", registry.has_upstream(), registry.upstream(), now);
  write_one(out, "authorizer", registry.has_authorizer(), registry.authorizer(), now);
  write_providers(out, registry, now);
  write_unsettled(out, status);
  out.name("reap_oldest_due_seconds");
  if (const auto age = registry.reap_age()) {
    out.number(whole_seconds(*age));
  } else {
    out.null();
  }
  write_outbox(out, status.gauges);
  out.end_object();
  return out.take() + "\n";
}

}  // namespace idem::admin
