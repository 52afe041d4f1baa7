#include "admin/keys_json.hpp"
#include <idem/worker_limits.hpp>

#include "admin/json_members.hpp"
#include "core/bytes/base64.hpp"
#include "core/exchange/answers.hpp"
#include "core/record/stored_fence.hpp"
#include "core/trace/trace_context.hpp"
#include "json/writer.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace idem::admin {
namespace {

using json::Writer;

/// Records have a moment of zero for none.
void write_moment_of(Writer& out, std::string_view name, const std::optional<StoreTime>& moment) {
  write_moment(out, name, moment == StoreTime{} ? std::nullopt : moment);
}

/// The members of a record in a listing.
void write_summary(Writer& out, const Record& record) {
  out.member("ref", to_hex(record.id.bytes));
  out.member("scope", record.scope);
  out.member("operation", record.operation);
  out.member("state", name_of(record.state));
  out.member("fence", stored_fence(record.fence()));
  out.flag("contested", record.is_contested);
  write_moment_of(out, "created_at", record.created_at);
  write_moment_of(out, "changed_at", record.changed_at);
  write_moment_of(out, "locked_until", record.locked_until);
  write_moment_of(out, "completed_at", record.completed_at);
  write_moment_of(out, "expires_at", record.expires_at);
  out.member("provider", record.provider);
  write_text_or_null(out, "release_basis",
                     record.release_basis ? idem::name_of(*record.release_basis) : "");
  out.member("last_error_code", record.last_error_code);
  write_moment_of(out, "reconcile_after", record.reconcile_after);
  out.member("reconcile_attempts", record.reconcile_attempts);
  out.member("upstream_reference", record.upstream_reference);
  write_optional(out, "response_status",
                 record.response ? std::optional(record.response->status) : std::nullopt);
}

std::string_view lease_policy_name(LeasePolicy policy) {
  switch (policy) {
    case LeasePolicy::unknown:
      return "unknown";
    case LeasePolicy::resume:
      return "resume";
    case LeasePolicy::rerun:
      return "rerun";
  }
  return "unknown";
}

std::string_view name_or_none(State state) { return state == State{} ? "none" : name_of(state); }

/// A member that some callers may not see.
void write_text(Writer& out, std::string_view name, std::string_view text, Bodies bodies) {
  out.name(name);
  if (bodies == Bodies::withheld) return out.null();
  out.text(text);
}

void write_headers(Writer& out, const StoredResponse& response, Bodies bodies) {
  out.name("headers");
  if (bodies == Bodies::withheld) return out.null();
  out.begin_array();
  for (const auto& field : response.headers) {
    if (lies_beside(field.name)) continue;
    out.begin_array();
    out.text(field.name);
    out.text(field.value);
    out.end_array();
  }
  out.end_array();
}

/// The version of its rules and the last eight bytes, which cover all that counts: enough to
/// compare two by eye, and too few to try requests against.
std::string shown_fingerprint(const Fingerprint& fingerprint) {
  std::array<std::uint8_t, 8> last{};
  std::copy_n(fingerprint.digest.end() - last.size(), last.size(), last.begin());
  return "v" + std::to_string(fingerprint.version) + ":" + to_hex(last);
}

/// The trace of the request whose answer is stored.
std::optional<std::string> trace_of(const std::optional<StoredResponse>& response) {
  const auto fields = response ? std::span(response->headers) : std::span<const Field>();
  const auto field = std::ranges::find(fields, trace_field, &Field::name);
  const auto trace = field != fields.end() ? parse_traceparent(field->value) : std::nullopt;
  if (!trace) return std::nullopt;
  return to_hex(trace->trace.bytes);
}

void write_response(Writer& out, const std::optional<StoredResponse>& response, Bodies bodies) {
  out.name("response");
  if (!response) return out.null();
  out.begin_object();
  out.member("status", response->status);
  write_headers(out, *response, bodies);
  out.flag("body_stored", response->body_stored);
  write_text(out, "body_b64", to_base64(response->body), bodies);
  out.end_object();
}

void write_texts(Writer& out, std::string_view name, std::span<const std::string> texts) {
  out.name(name);
  out.begin_array();
  for (const auto& text : texts) out.text(text);
  out.end_array();
}

void write_searched(Writer& out, const Searched& searched) {
  out.name("search");
  out.begin_object();
  out.flag("configured", searched.indexed.is_on);
  write_moment_of(out, "since", searched.since);
  write_texts(out, "requests", searched.indexed.requests);
  write_texts(out, "answers", searched.indexed.answers);
  out.flag("earlier_settings", searched.has_earlier_settings);
  out.member("days", searched.days);
  out.flag("more", searched.has_more);
  out.member("unreadable", searched.unreadable);
  out.end_object();
}

void write_evidence(Writer& out, std::span<const EvidenceEntry> evidence, Bodies bodies) {
  out.name("evidence");
  out.begin_array();
  for (const auto& entry : evidence) {
    out.begin_object();
    out.member("fence", stored_fence(entry.fence));
    out.member("source", entry.source);
    write_text(out, "evidence", entry.evidence, bodies);
    out.member("reason", entry.reason);
    out.member("before", name_or_none(entry.before));
    out.member("after", name_or_none(entry.after));
    out.flag("applied", entry.applied);
    write_moment_of(out, "observed_at", entry.observed_at);
    write_moment_of(out, "recorded_at", entry.recorded_at);
    out.end_object();
  }
  out.end_array();
}

}  // namespace

void write_counts(Writer& out, const Census& census) {
  out.begin_object();
  for (const auto state : {State::pending, State::in_progress, State::completed,
                           State::failed_retryable, State::unknown, State::expired}) {
    out.member(name_of(state), census.by_state[static_cast<std::size_t>(state)]);
  }
  out.end_object();
}

std::string keys_page(std::span<const ListedKey> keys, const std::optional<RecordId>& next,
                      const Census& census, const Searched* searched) {
  Writer out;
  out.begin_object();
  out.name("keys");
  out.begin_array();
  for (const auto& [record, values, found_by] : keys) {
    out.begin_object();
    write_summary(out, record);
    if (searched != nullptr) write_texts(out, "found_by", found_by);
    if (!values.empty()) {
      out.name("values");
      out.json(values);
    }
    out.end_object();
  }
  out.end_array();
  write_text_or_null(out, "next", next ? to_hex(next->bytes) : "");
  if (searched != nullptr) write_searched(out, *searched);
  out.name("counts");
  write_counts(out, census);
  write_moment_of(out, "now", census.now);
  out.end_object();
  return out.take() + "\n";
}

std::string key_summary(const Record& record) {
  Writer out;
  out.begin_object();
  write_summary(out, record);
  out.end_object();
  return out.take();
}

std::string values_of(const std::optional<StoredResponse>& response,
                      std::span<const std::pair<std::string, JsonPointer>> values) {
  Writer out;
  if (!response || !response->body_stored || !check_json(response->body)) {
    out.null();
    return out.take();
  }
  out.begin_object();
  for (const auto& [name, pointer] : values) {
    out.name(name);
    const auto found = pointer.find(response->body);
    const auto text = found ? scalar_of(*found) : std::nullopt;
    if (text && text->size() <= limits::listed_value_bytes_max) {
      out.text(*text);
    } else {
      out.null();
    }
  }
  out.end_object();
  return out.take();
}

std::string refs_page(std::span<const std::set<RecordId>> refs) {
  Writer out;
  out.begin_object();
  out.name("refs");
  out.begin_array();
  for (const auto& of_one : refs) {
    out.begin_array();
    for (const RecordId& id : of_one) out.text(to_hex(id.bytes));
    out.end_array();
  }
  out.end_array();
  out.end_object();
  return out.take() + "\n";
}

std::string key_page(const Record& record, std::span<const EvidenceEntry> evidence,
                     std::string_view evidence_damage, Bodies bodies, const Links& links) {
  Writer out;
  out.begin_object();
  write_summary(out, record);
  write_moment_of(out, "tombstone_until", record.tombstone_until);
  out.member("owner", record.owner);
  out.flag("dispatched", record.dispatched);
  out.member("lease_policy", lease_policy_name(record.lease_policy));
  out.member("recovery_point", record.recovery_point);
  out.flag("request_stored", record.stored_request.has_value());
  out.member("request_fingerprint", shown_fingerprint(record.fingerprint));
  const std::string trace = trace_of(record.response).value_or("");
  write_text_or_null(out, "trace_id", trace);
  write_text_or_null(out, "trace_link",
                     filled(links.trace, Links::trace_place, trace).value_or(""));
  const auto upstream = filled(links.upstream, Links::upstream_place, record.upstream_reference);
  write_text_or_null(out, "upstream_link", upstream.value_or(""));
  write_response(out, record.response, bodies);
  write_evidence(out, evidence, bodies);
  if (!evidence_damage.empty()) out.member("evidence_damaged", evidence_damage);
  out.end_object();
  return out.take() + "\n";
}

}  // namespace idem::admin
