#include "store/postgres/put_record.hpp"

#include "core/bytes/hex.hpp"
#include "core/bytes/json_string.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/record/stored_fence.hpp"
#include "core/record/stored_response_codec.hpp"
#include "store/postgres/cells.hpp"
#include "store/postgres/outcome.hpp"

namespace idem::postgres {
namespace {

// A commit that does not wait for the disk: for records of a store that nobody uses yet.
constexpr std::string_view put_sql =
    "SELECT d.* FROM pg_catalog.set_config('synchronous_commit', 'off', true),"
    " idem.put_records($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) d";
constexpr std::string_view put_durably_sql =
    "SELECT * FROM idem.put_records($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/// A bytea's text form (PostgreSQL documentation, "Binary Data Types").
std::string hex_text(std::string_view bytes) { return "\\x" + hex_of(bytes); }

/// The columns of a row by their names, as a JSON object; an absent one is NULL.
class Columns {
 public:
  Columns& text(std::string_view name, std::string_view value) {
    append_json_string(value_of(name), as_text(value));
    return *this;
  }
  template <std::integral Number>
  Columns& number(std::string_view name, Number value) {
    value_of(name) += std::to_string(value);
    return *this;
  }
  Columns& flag(std::string_view name, bool value) {
    value_of(name) += value ? "true" : "false";
    return *this;
  }
  Columns& bytes(std::string_view name, std::string_view value) {
    append_json_string(value_of(name), hex_text(value));
    return *this;
  }
  Columns& moment(std::string_view name, const std::optional<StoreTime>& value) {
    return value ? text(name, to_rfc3339(*value)) : *this;
  }
  Columns& state(std::string_view name, State value) {
    return value != State{} ? text(name, name_of(value)) : *this;
  }
  std::string take() { return std::move(out_) + '}'; }

 private:
  std::string& value_of(std::string_view name) {
    if (out_.size() > 1) out_ += ',';
    append_json_string(out_, name);
    out_ += ':';
    return out_;
  }

  std::string out_ = "{";
};

std::string row_of(const Record& record) {
  Columns row;
  row.text("id", to_hex(record.id.bytes))
      .text("scope", record.scope)
      .text("operation", record.operation)
      .number("generation", record.generation)
      .bytes("fingerprint", bytes_of({record.fingerprint}))
      .state("state", record.state)
      .number("fence", stored_fence(record.fence()))
      .text("token", to_hex((record.attempt ? record.attempt->token : Token{}).bytes))
      .text("owner", record.owner)
      .moment("locked_until", record.locked_until)
      .flag("dispatched", record.dispatched)
      .text("lease_policy", policy_name(record.lease_policy))
      .number("retention", record.retention.count())
      .number("tombstone", record.tombstone.count())
      .text("recovery_point", record.recovery_point)
      .text("last_error_code", record.last_error_code)
      .moment("reconcile_after", record.reconcile_after)
      .number("reconcile_attempts", record.reconcile_attempts)
      .text("upstream_reference", record.upstream_reference)
      .moment("created_at", record.created_at)
      .moment("changed_at", record.changed_at)
      .moment("completed_at", record.completed_at)
      .moment("expires_at", record.expires_at)
      .moment("tombstone_until", record.tombstone_until)
      .number("charged", record.charged)
      .flag("contested", record.is_contested);
  if (record.release_basis) row.text("release_basis", name_of(*record.release_basis));
  if (!record.provider.empty()) row.text("provider", record.provider);
  if (!record.sealed_key.empty()) row.bytes("sealed_key", record.sealed_key);
  return row.take();
}

std::string lines_of(const std::vector<EvidenceEntry>& entries) {
  std::string lines = "[";
  for (const EvidenceEntry& entry : entries) {
    Columns line;
    line.number("fence", stored_fence(entry.fence))
        .text("source", entry.source)
        .text("evidence", entry.evidence)
        .text("reason", entry.reason)
        .state("before", entry.before)
        .state("after", entry.after)
        .flag("applied", entry.applied)
        .moment("observed_at", entry.observed_at)
        .moment("recorded_at", entry.recorded_at);
    if (lines.size() > 1) lines += ',';
    lines += line.take();
  }
  return lines + ']';
}

bool is_barrier(const PutRecord& verb) { return !verb.record && verb.evidence.empty(); }

const std::string* request_of(const PutRecord& verb) {
  return verb.record && verb.record->stored_request ? &*verb.record->stored_request : nullptr;
}

const StoredResponse* response_of(const PutRecord& verb) {
  return verb.record && verb.record->response ? &*verb.record->response : nullptr;
}

}  // namespace

bool goes_with_others(const PutRecord& verb) noexcept { return !is_barrier(verb) && !verb.ends; }

std::size_t payload_of(const PutRecord& verb) noexcept {
  const auto* const request = request_of(verb);
  const auto* const response = response_of(verb);
  std::size_t bytes = request != nullptr ? request->size() : 0;
  if (response != nullptr) {
    bytes += response->body.size();
    for (const Field& one : response->headers) bytes += one.name.size() + one.value.size();
  }
  for (const EvidenceEntry& line : verb.evidence) {
    bytes += line.evidence.size() + line.reason.size();
  }
  return bytes;
}

Statement ask_puts(std::span<const PutRecord* const> calls) {
  const PutRecord& first = *calls.front();
  const bool is_durable = is_barrier(first) || first.ends;
  Statement statement{is_durable ? put_durably_sql : put_sql, {}};
  Params& to = statement.params;
  const auto each = [&](Type type, auto append) {
    to.array(type);
    for (const PutRecord* const call : calls) append(*call);
  };
  each(Type::uuid_array, [&](auto& call) { to.append_uuid(call.id.bytes); });
  each(Type::text_array,
       [&](auto& call) { call.record ? to.append_text(row_of(*call.record)) : to.append_null(); });
  each(Type::bytea_array, [&](auto& call) {
    const auto* const request = request_of(call);
    request != nullptr ? to.append_bytes(*request) : to.append_null();
  });
  each(Type::bytea_array, [&](auto& call) {
    const auto* const response = response_of(call);
    if (response == nullptr) return to.append_null();
    std::string head;
    encode_answer(*response, head);
    to.append_bytes(head);
  });
  each(Type::bytea_array, [&](auto& call) {
    const auto* const response = response_of(call);
    response != nullptr ? to.append_bytes(response->body) : to.append_null();
  });
  each(Type::int8_array,
       [&](auto& call) { to.append_number(static_cast<std::int64_t>(call.behind)); });
  each(Type::text_array, [&](auto& call) { to.append_text(lines_of(call.evidence)); });
  each(Type::int8_array,
       [&](auto& call) { to.append_number(static_cast<std::int64_t>(call.fence_floor)); });
  to.number(static_cast<std::int64_t>(first.generation));
  first.ends ? to.uuid(first.ends->bytes) : to.null(Type::uuid);
  return statement;
}

std::vector<std::optional<CallResult>> results_of_puts(std::size_t calls, const Rows& rows) {
  std::vector<std::optional<CallResult>> results(calls);
  for (int row = 0; row < rows.size(); ++row) {
    Cells cells(rows, row);
    const auto number = static_cast<std::size_t>(cells.number());
    if (number < 1 || number > calls) continue;
    PutRecord::Reply reply;
    reply.put = cells.boolean();
    reply.evidence = static_cast<std::uint64_t>(cells.number());
    results[number - 1] = CallResult{reply};
  }
  return results;
}

}  // namespace idem::postgres
