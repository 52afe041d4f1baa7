#include "store/postgres/one_record.hpp"

#include "core/record/stored_response_codec.hpp"
#include "store/postgres/cells.hpp"
#include "store/postgres/outcome.hpp"

#include <charconv>

namespace idem::postgres {
namespace {

std::vector<std::string_view> elements_of(const Rows& rows) {
  if (rows.size() != 1 || rows.is_null(0, 0)) return {};
  return to_elements(rows.cell(0, 0));
}

template <class Number>
Number number_in(std::string_view text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// The parameters of a new record, up to its owner.
void add_record(Params& to, const NewRecord& record) {
  const Reserve& verb = *record.as;
  to.text(record.number)
      .number(record.began)
      .number(static_cast<std::int64_t>(verb.generation))
      .uuid(verb.id.bytes)
      .text(as_text(verb.scope))
      .text(as_text(verb.operation))
      .bytes(bytes_of({verb.fingerprints.front()}))
      .fence(record.fence)
      .uuid(verb.token.bytes)
      .text(as_text(verb.owner));
}
/// The parameters behind them.
void add_rules(Params& to, const Reserve& verb) {
  to.text(policy_name(verb.lease_policy))
      .boolean(verb.dispatched)
      .number(verb.retention.count())
      .number(verb.tombstone.count());
}

void add_answer(Params& to, const Complete& verb) {
  std::string head;
  encode_answer(verb.response, head);
  to.bytes(head).bytes(verb.response.body).text(as_text(verb.upstream_reference));
}

}  // namespace

OneStep ask_admit_new(const Reserve& verb) {
  OneStep step{"SELECT idem.admit_new($1, $2)", {}};
  step.params.number(static_cast<std::int64_t>(verb.generation)).uuid(verb.id.bytes);
  return step;
}

std::optional<NewRecord> results_of_admit_new(const Reserve& verb, const Rows& rows) {
  const auto elements = elements_of(rows);
  if (elements.size() != 3) return std::nullopt;
  return NewRecord{&verb, number_in<Fence>(elements[0]), std::string(elements[1]),
                   number_in<std::int64_t>(elements[2])};
}

OneStep ask_make_new(const NewRecord& record) {
  OneStep step{
      "SELECT idem.make_new($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::idem.lease_policy,"
      " $13, $14, $15)",
      {}};
  add_record(step.params, record);
  step.params.number(record.as->lease.count());
  add_rules(step.params, *record.as);
  return step;
}

OneStep ask_complete_new(const NewRecord& record, const Complete& verb) {
  OneStep step{
      "SELECT idem.complete_new($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::idem.lease_policy,"
      " $12, $13, $14, $15, $16, $17), false",
      {}};
  add_record(step.params, record);
  add_rules(step.params, *record.as);
  add_answer(step.params, verb);
  return step;
}

OneStep ask_admit(const RecordId& id, const Attempt& attempt) {
  OneStep step{"SELECT idem.admit($1, $2, $3)", {}};
  step.params.uuid(id.bytes).fence(attempt.fence).uuid(attempt.token.bytes);
  return step;
}

std::optional<Admitted> results_of_admit(const Rows& rows) {
  const auto elements = elements_of(rows);
  if (elements.size() != 3) return std::nullopt;
  return Admitted{std::string(elements[0]), elements[1] == "own", Cells::state_of(elements[2])};
}

OneStep ask_complete(const std::string& number, const Complete& verb) {
  OneStep step{"SELECT * FROM idem.complete_admitted($1, $2, $3, $4, $5, $6, $7)", {}};
  step.params.text(number)
      .uuid(verb.id.bytes)
      .fence(verb.attempt.fence)
      .uuid(verb.attempt.token.bytes);
  add_answer(step.params, verb);
  return step;
}

OwnerReply results_of_complete(const Rows& rows) {
  Cells cells(rows, 0);
  OwnerReply reply{Verdict::done, State::completed, cells.optional_moment()};
  reply.is_contradicted = cells.boolean();
  return reply;
}

std::optional<OwnerReply> results_of_refusal(const Failure& failure) {
  const bool is_stale = failure.sqlstate == "IDM01";
  if (!is_stale && failure.sqlstate != "IDM02") return std::nullopt;
  OwnerReply reply{is_stale ? Verdict::stale : Verdict::settled, {}, {}};
  if (const State state = Cells::state_of(failure.detail); state != State{}) reply.state = state;
  return reply;
}

bool is_another_transaction(const Failure& failure) { return failure.sqlstate == "IDM07"; }

bool is_forgotten(const Failure& failure) {
  return failure.sqlstate == "26000" || failure.sqlstate == "0A000";
}

}  // namespace idem::postgres
