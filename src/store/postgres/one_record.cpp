#include "store/postgres/one_record.hpp"

#include "core/stored_response_codec.hpp"
#include "store/postgres/cells.hpp"
#include "store/postgres/outcome.hpp"

#include <charconv>

namespace idem::postgres {
namespace {

std::vector<std::string_view> elements_of(const Rows& rows) {
  if (rows.size() != 1 || rows.is_null(0, 0)) return {};
  return to_elements(rows.cell(0, 0));
}

}  // namespace

OneStep ask_reserve_new(const Reserve& verb) {
  OneStep step{
      "SELECT idem.reserve_new($1, $2, $3, $4, $5, $6, $7, $8, $9::idem.lease_policy, $10, $11,"
      " $12)",
      {}};
  step.params.number(static_cast<std::int64_t>(verb.generation))
      .uuid(verb.id.bytes)
      .text(as_text(verb.scope))
      .text(as_text(verb.operation))
      .bytes(bytes_of({verb.fingerprints.front()}))
      .uuid(verb.token.bytes)
      .text(as_text(verb.owner))
      .number(verb.lease.count())
      .text(policy_name(verb.lease_policy))
      .boolean(verb.dispatched)
      .number(verb.retention.count())
      .number(verb.tombstone.count());
  return step;
}

std::optional<MadeNew> told_of_reserve_new(const Rows& rows) {
  const auto elements = elements_of(rows);
  if (elements.size() != 2) return std::nullopt;
  MadeNew made{0, std::string(elements[1])};
  std::from_chars(elements[0].data(), elements[0].data() + elements[0].size(), made.fence);
  return made;
}

OneStep ask_admit(const RecordId& id, const Attempt& attempt) {
  OneStep step{"SELECT idem.admit($1, $2, $3)", {}};
  step.params.uuid(id.bytes)
      .number(static_cast<std::int64_t>(attempt.fence))
      .uuid(attempt.token.bytes);
  return step;
}

std::optional<Admitted> told_of_admit(const Rows& rows) {
  const auto elements = elements_of(rows);
  if (elements.size() != 3) return std::nullopt;
  return Admitted{std::string(elements[0]), elements[1] == "own", Cells::state_of(elements[2])};
}

OneStep ask_complete(const std::string& number, const Complete& verb) {
  OneStep step{"SELECT idem.complete_admitted($1, $2, $3, $4, $5, $6, $7)", {}};
  std::string head;
  encode_answer(verb.response, head);
  step.params.text(number)
      .uuid(verb.id.bytes)
      .number(static_cast<std::int64_t>(verb.attempt.fence))
      .uuid(verb.attempt.token.bytes)
      .bytes(head)
      .bytes(verb.response.body)
      .text(as_text(verb.upstream_reference));
  return step;
}

OwnerReply told_of_complete(const Rows& rows) {
  return {Verdict::done, State::completed, Cells(rows, 0).optional_moment()};
}

std::optional<OwnerReply> told_of_refusal(const Failure& failure) {
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
