#include "core/record/stored_fence.hpp"
#include "core/record/stored_response_codec.hpp"
#include "store/postgres/outcome.hpp"
#include "store/postgres/owner_fields.hpp"
#include "store/postgres/statements.hpp"

#include <algorithm>

namespace idem::postgres {
namespace {

template <class Call, class Append>
void add_array(Params& params, Type type, std::span<const Call* const> calls, Append append) {
  params.array(type);
  for (const Call* call : calls) append(*call);
}

/// Null if no call has a value, as in most batches.
template <class Append>
void add_optional_array(Params& params, Type type, std::span<const Reserve* const> calls,
                        std::string Reserve::* member, Append append) {
  if (std::ranges::all_of(calls, [&](const Reserve* call) { return (call->*member).empty(); })) {
    params.null(type);
    return;
  }
  params.array(type);
  for (const Reserve* call : calls) {
    const std::string& value = call->*member;
    value.empty() ? params.append_null() : append(value);
  }
}

bool is_completion(const StoreCall* call) noexcept {
  return std::holds_alternative<Complete>(*call);
}

/// The index of the call with this number; none: there is no such call.
std::optional<std::size_t> place_of(std::int64_t number, std::size_t calls) noexcept {
  if (number < 1 || static_cast<std::size_t>(number) > calls) return std::nullopt;
  return static_cast<std::size_t>(number - 1);
}

const std::string find_sql = "SELECT " + record_columns("request") +
                             ", is_request_damaged, answer_head, answer_body FROM"
                             " (SELECT (f.record).*,"
                             " idem.has_damaged_request(f.record) AS is_request_damaged,"
                             " f.response_head AS answer_head, f.response_body AS answer_body"
                             " FROM idem.find_many($1) f) r";

CallResult to_found(Cells& cells) {
  auto record = to_record(cells);
  if (!record) return {std::unexpected(std::move(record.error()))};
  if (cells.boolean()) return {std::unexpected(damaged(request_differs, record->id))};
  if (record->response) {
    // idem.view_of() gives a record that contradicts itself no status.
    const bool contradicts = record->response->status == 0;
    if (cells.is_null()) {
      return {
          std::unexpected(damaged(contradicts ? record_contradicts : answer_differs, record->id))};
    }
    auto response = decode_answer(cells.bytes());
    if (!response) return {std::unexpected(damaged(response.error()))};
    record->response = std::move(*response);
    record->response->body = std::string(cells.bytes());
  }
  return {std::optional(std::move(*record))};
}

}  // namespace

void add_quota(Params& to, const std::optional<Quota>& quota) {
  if (!quota) {
    to.null(Type::int8).null(Type::int8).null(Type::int8).null(Type::int8);
    return;
  }
  to.number(quota->new_key_interval.count())
      .number(quota->new_keys_at_once)
      .number(static_cast<std::int64_t>(quota->active_keys))
      .number(static_cast<std::int64_t>(quota->stored_bytes));
}

Statement ask_reserves(std::span<const Reserve* const> calls) {
  Statement statement{
      "SELECT r.granted, r.number, (r.answered).* FROM idem.reserve_many($1, $2, $3, $4, $5, $6, "
      "$7,"
      " $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) r",
      {}};
  // The first call of each key comes before all repeats.
  const auto repeated = std::ranges::is_sorted_until(
      calls, [](const Reserve* a, const Reserve* b) { return a->id <= b->id; });
  Params& to = statement.params;
  to.number(static_cast<std::int64_t>(calls.front()->generation))
      .small(static_cast<std::int32_t>(repeated - calls.begin()));
  add_array(to, Type::uuid_array, calls, [&](auto& call) { to.append_uuid(call.id.bytes); });
  add_array(to, Type::text_array, calls, [&](auto& call) { to.append_text(as_text(call.scope)); });
  add_array(to, Type::text_array, calls,
            [&](auto& call) { to.append_text(as_text(call.operation)); });
  add_array(to, Type::bytea_array, calls,
            [&](auto& call) { to.append_bytes(bytes_of(call.fingerprints)); });
  add_array(to, Type::uuid_array, calls, [&](auto& call) { to.append_uuid(call.token.bytes); });
  add_array(to, Type::text_array, calls, [&](auto& call) { to.append_text(as_text(call.owner)); });
  add_array(to, Type::int8_array, calls, [&](auto& call) { to.append_number(call.lease.count()); });
  add_array(to, Type::text_array, calls,
            [&](auto& call) { to.append_text(policy_name(call.lease_policy)); });
  add_array(to, Type::bool_array, calls, [&](auto& call) { to.append_boolean(call.dispatched); });
  add_array(to, Type::int8_array, calls,
            [&](auto& call) { to.append_number(call.retention.count()); });
  add_array(to, Type::int8_array, calls,
            [&](auto& call) { to.append_number(call.tombstone.count()); });
  add_quota(to, calls.front()->quota);
  add_optional_array(to, Type::text_array, calls, &Reserve::provider,
                     [&](auto& provider) { to.append_text(as_text(provider)); });
  add_optional_array(to, Type::bytea_array, calls, &Reserve::sealed_key,
                     [&](auto& key) { to.append_bytes(key); });
  return statement;
}

std::vector<std::optional<CallResult>> results_of_reserves(std::span<const Reserve* const> calls,
                                                           const Rows& rows) {
  std::vector<std::optional<CallResult>> results(calls.size());
  for (int row = 0; row < rows.size(); ++row) {
    Cells cells(rows, row);
    const auto granted = to_elements(cells.bytes());
    for (std::size_t i = 0; i < std::min(granted.size(), calls.size()); ++i) {
      const auto fence = fence_from(static_cast<std::uint64_t>(to_number(granted[i])));
      if (!fence) continue;
      results[i] =
          CallResult{ReserveOutcome(Execute{calls[i]->id, {*fence, calls[i]->token}, {}, false})};
    }
    if (row == 0) continue;
    const auto at = place_of(cells.number(), calls.size());
    if (at) results[*at] = to_outcome(cells, calls[*at]->token);
  }
  return results;
}

Statement ask_owners(std::span<const StoreCall* const> calls) {
  Statement statement{
      "SELECT * FROM idem.owners_many($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)", {}};
  std::vector<OwnerFields> fields;
  fields.reserve(calls.size());
  for (const StoreCall* call : calls) fields.push_back(owner_fields(*call));
  std::vector<const OwnerFields*> all;
  for (const OwnerFields& one : fields) all.push_back(&one);
  const std::span<const OwnerFields* const> span(all);

  Params& to = statement.params;
  const auto texts = [&](auto of, auto member) {
    add_array(to, Type::text_array, of, [&](auto& one) { to.append_text(as_text(one.*member)); });
  };
  const auto bytes = [&](auto member) {
    add_array(to, Type::bytea_array, span, [&](auto& one) {
      const auto& value = one.*member;
      value ? to.append_bytes(*value) : to.append_null();
    });
  };
  const auto numbers = [&](auto of, auto member) {
    add_array(to, Type::int8_array, of, [&](auto& one) {
      const auto& value = one.*member;
      value ? to.append_number(value->count()) : to.append_null();
    });
  };
  // Arrays that completions do not use are empty in a batch of completions.
  const std::span<const OwnerFields* const> others =
      std::ranges::all_of(calls, is_completion) ? std::span<const OwnerFields* const>() : span;
  texts(span, &OwnerFields::verb);
  add_array(to, Type::uuid_array, span, [&](auto& one) { to.append_uuid(one.id.bytes); });
  add_array(to, Type::int8_array, span, [&](auto& one) {
    to.append_number(static_cast<std::int64_t>(stored_fence(one.attempt.fence)));
  });
  add_array(to, Type::uuid_array, span,
            [&](auto& one) { to.append_uuid(one.attempt.token.bytes); });
  numbers(others, &OwnerFields::lease);
  texts(others, &OwnerFields::recovery_point);
  bytes(&OwnerFields::head);
  bytes(&OwnerFields::body);
  texts(span, &OwnerFields::reference);
  texts(others, &OwnerFields::basis);
  texts(others, &OwnerFields::error_code);
  numbers(others, &OwnerFields::retry_in);
  numbers(others, &OwnerFields::reconcile_in);
  return statement;
}

std::vector<std::optional<CallResult>> results_of_owners(std::size_t calls, const Rows& rows) {
  std::vector<std::optional<CallResult>> results(calls);
  for (int row = 0; row < rows.size(); ++row) {
    Cells cells(rows, row);
    const auto usual = to_elements(cells.bytes());
    const auto until = to_elements(cells.bytes());
    for (std::size_t i = 0; i < std::min(usual.size(), until.size()); ++i) {
      const auto at = place_of(to_number(usual[i]), calls);
      if (at)
        results[*at] = CallResult{OwnerReply{Verdict::done, State::completed, to_moment(until[i])}};
    }
    if (row == 0) continue;
    const auto at = place_of(cells.number(), calls);
    if (at) results[*at] = to_owner_reply(cells);
  }
  return results;
}

Statement ask_finds(std::span<const Find* const> calls) {
  Statement statement{find_sql, {}};
  add_array(statement.params, Type::uuid_array, calls,
            [&](auto& call) { statement.params.append_uuid(call.id.bytes); });
  return statement;
}

std::vector<CallResult> results_of_finds(std::span<const Find* const> calls, const Rows& rows) {
  std::vector<CallResult> results;
  for (std::size_t i = 0; i < calls.size(); ++i) results.push_back({std::optional<Record>()});
  for (int row = 0; row < rows.size(); ++row) {
    const RecordId id = Cells(rows, row).id();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (calls[i]->id != id) continue;
      Cells cells(rows, row);
      results[i] = to_found(cells);
    }
  }
  return results;
}

Statement ask_evidence(std::span<const ReadEvidence* const> calls) {
  Statement statement{
      "SELECT i.number, e.fence, e.source, e.evidence, e.reason, e.before_state, e.after_state,"
      " e.applied, e.observed_at, e.recorded_at"
      " FROM pg_catalog.unnest($1) WITH ORDINALITY i(id, number), idem.read_evidence(i.id) e"
      " ORDER BY i.number, e.line",
      {}};
  add_array(statement.params, Type::uuid_array, calls,
            [&](auto& call) { statement.params.append_uuid(call.id.bytes); });
  return statement;
}

std::vector<CallResult> results_of_evidence(std::size_t calls, const Rows& rows) {
  std::vector<std::vector<EvidenceEntry>> entries(calls);
  for (int row = 0; row < rows.size(); ++row) {
    Cells cells(rows, row);
    const auto at = place_of(cells.number(), calls);
    if (!at) continue;
    EvidenceEntry entry;
    entry.fence = cells.fence();
    entry.source = cells.text();
    entry.evidence = cells.text();
    entry.reason = cells.text();
    entry.before = cells.state();
    entry.after = cells.state();
    entry.applied = cells.boolean();
    entry.observed_at = cells.moment();
    entry.recorded_at = cells.moment();
    entries[*at].push_back(std::move(entry));
  }
  std::vector<CallResult> results;
  for (auto& of_one : entries) results.push_back({std::move(of_one)});
  return results;
}

}  // namespace idem::postgres
