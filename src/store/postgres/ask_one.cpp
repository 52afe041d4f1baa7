#include "core/record/stored_response_codec.hpp"
#include "store/postgres/outcome.hpp"
#include "store/postgres/put_record.hpp"
#include "store/postgres/statements.hpp"

#include <idem/assert.hpp>
#include <idem/limits.hpp>

#include <algorithm>

namespace idem::postgres {
namespace {

/// A reserve, or with `request` an accept.
Statement alone(const Reserve& verb, const std::string* request) {
  Statement statement{
      "SELECT o.* FROM idem.reserve_alone($1, $2, $3, $4, $5, $6, $7, $8, $9::idem.lease_policy, "
      "$10,"
      " $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21) o",
      {}};
  Params& to = statement.params;
  to.number(static_cast<std::int64_t>(verb.generation))
      .uuid(verb.id.bytes)
      .text(as_text(verb.scope))
      .text(as_text(verb.operation))
      .bytes(bytes_of(verb.fingerprints))
      .uuid(verb.token.bytes)
      .text(as_text(verb.owner))
      .number(verb.lease.count())
      .text(policy_name(verb.lease_policy))
      .boolean(verb.dispatched)
      .number(verb.retention.count())
      .number(verb.tombstone.count());
  to.array(Type::uuid_array);
  for (const OtherName& other : verb.also) to.append_uuid(other.id.bytes);
  to.array(Type::bytea_array);
  for (const OtherName& other : verb.also) to.append_bytes(bytes_of(other.fingerprints));
  request != nullptr ? to.bytes(*request) : to.null(Type::bytea);
  add_quota(to, verb.quota);
  verb.provider.empty() ? to.null(Type::text) : to.text(as_text(verb.provider));
  verb.sealed_key.empty() ? to.null(Type::bytea) : to.bytes(verb.sealed_key);
  return statement;
}

// A list only says whether there is a stored request: a page of requests may be a gigabyte.
const std::string list_sql =
    "SELECT " + record_columns("CASE WHEN request IS NOT NULL THEN ''::pg_catalog.bytea END") +
    " FROM idem.list($1::idem.state, $2, $3, $4, $5, $6)";

std::int64_t lines_of(std::size_t limit) {
  return static_cast<std::int64_t>(std::min(limit, limits::journal_read_lines_max));
}

struct Ask {
  Statement operator()(const Reserve& verb) const { return alone(verb, nullptr); }
  Statement operator()(const Accept& verb) const { return alone(verb.as, &verb.request); }
  Statement operator()(const Claim& verb) const {
    Statement statement{"SELECT * FROM idem.claim($1, $2, $3, $4)", {}};
    statement.params.uuid(verb.token.bytes)
        .text(as_text(verb.owner))
        .number(verb.lease.count())
        .boolean(verb.dispatched);
    return statement;
  }
  Statement operator()(const Resolve& verb) const {
    Statement statement{
        "SELECT * FROM idem.resolve($1, $2::idem.state, $3, $4, $5, $6, $7, $8, $9, $10, $11)", {}};
    Params& to = statement.params;
    const bool positive = verb.as == Resolve::As::completed;
    to.uuid(verb.id.bytes).text(positive ? "completed" : "failed_retryable").fence(verb.fence);
    if (verb.response) {
      std::string head;
      encode_answer(*verb.response, head);
      to.bytes(head).bytes(verb.response->body);
    } else {
      to.null(Type::bytea).null(Type::bytea);
    }
    to.text(as_text(verb.source))
        .text(as_text(verb.evidence))
        .text(as_text(verb.reason))
        .moment(verb.observed_at)
        .number(verb.grace.count())
        .boolean(verb.denies);
    return statement;
  }
  Statement operator()(const CacheBust& verb) const {
    Statement statement{"SELECT * FROM idem.cache_bust($1, $2, $3, $4)", {}};
    statement.params.uuid(verb.id.bytes)
        .fence(verb.fence)
        .text(as_text(verb.reason))
        .text(as_text(verb.source));
    return statement;
  }
  Statement operator()(const Reschedule& verb) const {
    // A plan that a crash of the server forgets is made again, and the question is asked once more.
    // Evidence, and the end of the turns, must be durable.
    const bool is_plan = verb.source.empty() && verb.reconcile_in;
    Statement statement{
        is_plan ? "SELECT d.* FROM pg_catalog.set_config('synchronous_commit', 'off', true),"
                  " idem.reschedule($1, $2, $3, $4, $5, $6, $7, $8) d"
                : "SELECT * FROM idem.reschedule($1, $2, $3, $4, $5, $6, $7, $8)",
        {}};
    Params& to = statement.params;
    to.uuid(verb.id.bytes).fence(verb.fence).small(static_cast<std::int32_t>(verb.attempts));
    verb.reconcile_in ? to.number(verb.reconcile_in->count()) : to.null(Type::int8);
    to.text(as_text(verb.source))
        .text(as_text(verb.evidence))
        .text(as_text(verb.reason))
        .moment(verb.observed_at);
    return statement;
  }
  Statement operator()(const Reseal& verb) const {
    Statement statement{"SELECT * FROM idem.reseal($1, $2, $3, $4, $5, $6)", {}};
    Params& to = statement.params;
    to.uuid(verb.id.bytes).fence(verb.fence);
    to.bytes({reinterpret_cast<const char*>(verb.seen.data()), verb.seen.size()});
    if (verb.response) {
      std::string head;
      encode_answer(*verb.response, head);
      to.bytes(head).bytes(verb.response->body);
    } else {
      to.null(Type::bytea).null(Type::bytea);
    }
    verb.request ? to.bytes(*verb.request) : to.null(Type::bytea);
    return statement;
  }
  Statement operator()(const Find& verb) const {
    const Find* const calls[] = {&verb};
    return ask_finds(calls);
  }
  Statement operator()(const List& verb) const {
    Statement statement{list_sql, {}};
    Params& to = statement.params;
    verb.state ? to.text(name_of(*verb.state)) : to.null(Type::text);
    verb.scope ? to.text(as_text(*verb.scope)) : to.null(Type::text);
    verb.operation ? to.text(as_text(*verb.operation)) : to.null(Type::text);
    to.optional_moment(verb.created_before);
    verb.after ? to.uuid(verb.after->bytes) : to.null(Type::uuid);
    to.small(static_cast<std::int32_t>(std::min<std::size_t>(verb.limit, INT32_MAX)));
    return statement;
  }
  Statement operator()(const Sweep& verb) const { return batch("idem.sweep", verb.limit); }
  Statement operator()(const Reap& verb) const { return batch("idem.reap", verb.limit); }
  Statement operator()(const ReadEvidence& verb) const {
    const ReadEvidence* const calls[] = {&verb};
    return ask_evidence(calls);
  }
  Statement operator()(const Count&) const { return {"SELECT * FROM idem.census()", {}}; }
  Statement operator()(const AppendLine& verb) const {
    Statement statement{"SELECT * FROM idem.append_line($1, $2, $3, $4)", {}};
    statement.params.text(as_text(verb.journal))
        .number(static_cast<std::int64_t>(verb.behind))
        .bytes(verb.line)
        .optional_moment(verb.at);
    return statement;
  }
  Statement operator()(const ReadLines& verb) const {
    Statement statement{"SELECT * FROM idem.read_lines($1, $2, $3, $4)", {}};
    statement.params.text(as_text(verb.journal))
        .number(static_cast<std::int64_t>(verb.after))
        .number(lines_of(verb.limit))
        .number(limits::journal_read_bytes_max);
    return statement;
  }
  Statement operator()(const ListJournals& verb) const {
    Statement statement{"SELECT * FROM idem.list_journals($1, $2, $3)", {}};
    statement.params.text(as_text(verb.prefix))
        .text(as_text(verb.after))
        .number(lines_of(verb.limit));
    return statement;
  }
  Statement operator()(const DropJournal& verb) const {
    Statement statement{"SELECT * FROM idem.drop_journal($1, $2)", {}};
    statement.params.text(as_text(verb.journal)).number(static_cast<std::int64_t>(verb.last));
    return statement;
  }
  Statement operator()(const PutRecord& verb) const {
    const PutRecord* const calls[] = {&verb};
    return ask_puts(calls);
  }
  Statement operator()(const AdoptRoutes&) const {
    IDEM_ASSERT(!"several statements");
    return {};
  }
  template <class Verb>
  Statement operator()(const Verb&) const {
    IDEM_ASSERT(!"a batched call");
    return {};
  }

  /// The commit does not wait for the disk. After a crash the server does lost steps again, and
  /// nothing that followed from them outlives them, because the log is written in order.
  static Statement batch(std::string_view function, std::size_t limit) {
    Statement statement{
        function == "idem.sweep"
            ? "SELECT d.* FROM pg_catalog.set_config('synchronous_commit', 'off', true),"
              " idem.sweep($1) d"
            : "SELECT d.* FROM pg_catalog.set_config('synchronous_commit', 'off', true),"
              " idem.reap($1) d",
        {}};
    statement.params.small(static_cast<std::int32_t>(std::min<std::size_t>(limit, INT32_MAX)));
    return statement;
  }
};

Resolve::Reply to_verdict(Cells& cells) {
  static constexpr std::string_view names[] = {"done",        "not_found",        "wrong_state",
                                               "wrong_fence", "missing_response", "too_early",
                                               "by_evidence", "superseded"};
  Resolve::Reply reply;
  const auto found = std::ranges::find(names, cells.bytes());
  IDEM_ASSERT(found != std::end(names));
  reply.verdict = static_cast<Resolve::Verdict>(found - std::begin(names));
  const State state = cells.state();
  if (state != State{}) reply.state = state;
  return reply;
}

struct ReplyDecoder {
  const Rows& rows;

  CallResult operator()(const Reserve& verb) const { return outcome(verb.token); }
  CallResult operator()(const Accept& verb) const { return outcome(verb.as.token); }
  CallResult operator()(const Claim& verb) const {
    if (rows.size() == 0) return {std::optional<Claimed>()};
    Cells cells(rows, 0);
    Claimed claimed;
    claimed.id = cells.id();
    claimed.scope = cells.text();
    claimed.operation = cells.text();
    claimed.attempt = {static_cast<Fence>(cells.number()), verb.token};
    if (cells.is_null()) {
      return {std::unexpected(damaged(request_differs, claimed.id))};
    }
    claimed.request = std::string(cells.bytes());
    claimed.recovery_point = cells.text();
    return {std::optional(std::move(claimed))};
  }
  CallResult operator()(const Resolve&) const {
    if (rows.size() != 1) return verdict();
    Cells cells(rows, 0);
    Resolve::Reply reply = to_verdict(cells);
    reply.is_contradicted = cells.boolean();
    return {reply};
  }
  CallResult operator()(const CacheBust&) const { return verdict(); }
  CallResult operator()(const Reschedule&) const { return verdict(); }
  CallResult operator()(const Reseal&) const { return verdict(); }
  CallResult operator()(const Find& verb) const {
    const Find* const calls[] = {&verb};
    return std::move(results_of_finds(calls, rows).front());
  }
  CallResult operator()(const List&) const {
    std::vector<Record> records;
    for (int row = 0; row < rows.size(); ++row) {
      Cells cells(rows, row);
      auto record = to_record(cells);
      if (!record) return {std::unexpected(std::move(record.error()))};
      records.push_back(std::move(*record));
    }
    return {std::move(records)};
  }
  CallResult operator()(const Sweep&) const { return steps(); }
  CallResult operator()(const Reap&) const { return steps(); }
  CallResult operator()(const ReadEvidence&) const {
    return std::move(results_of_evidence(1, rows).front());
  }
  CallResult operator()(const Count&) const {
    Census census;
    for (int row = 0; row < rows.size(); ++row) {
      Cells cells(rows, row);
      const auto state = static_cast<std::size_t>(cells.state());
      census.by_state[state] = static_cast<std::uint64_t>(cells.number());
      const auto oldest = cells.optional_moment();
      if (oldest) census.oldest_unknown = oldest;
      census.now = cells.moment();
    }
    return {census};
  }
  CallResult operator()(const PutRecord&) const {
    auto result = std::move(results_of_puts(1, rows).front());
    if (!result) return {std::unexpected(damaged("no verdict about a copied record"))};
    return std::move(*result);
  }
  CallResult operator()(const AppendLine&) const {
    if (rows.size() != 1) return {std::unexpected(damaged("no verdict about a line"))};
    Cells cells(rows, 0);
    AppendLine::Reply reply;
    reply.appended = cells.boolean();
    reply.last = static_cast<std::uint64_t>(cells.number());
    reply.now = cells.moment();
    return {reply};
  }
  CallResult operator()(const ReadLines&) const {
    if (rows.size() == 0) return {std::unexpected(damaged("no end of a journal"))};
    ReadLines::Reply reply;
    for (int row = 0; row < rows.size(); ++row) {
      Cells cells(rows, row);
      reply.last = static_cast<std::uint64_t>(cells.number());
      reply.now = cells.moment();
      if (row == 0) continue;
      JournalLine line;
      line.seq = static_cast<std::uint64_t>(cells.number());
      line.at = cells.moment();
      line.bytes = std::string(cells.bytes());
      line.is_damaged = cells.boolean();
      reply.lines.push_back(std::move(line));
    }
    return {std::move(reply)};
  }
  CallResult operator()(const ListJournals&) const {
    std::vector<JournalSummary> journals;
    for (int row = 0; row < rows.size(); ++row) {
      Cells cells(rows, row);
      JournalSummary one;
      one.name = cells.text();
      one.last = static_cast<std::uint64_t>(cells.number());
      one.bytes = static_cast<std::uint64_t>(cells.number());
      journals.push_back(std::move(one));
    }
    return {std::move(journals)};
  }
  CallResult operator()(const DropJournal&) const {
    if (rows.size() != 1) return {std::unexpected(damaged("no verdict about a journal"))};
    Cells cells(rows, 0);
    DropJournal::Reply reply;
    reply.dropped = cells.boolean();
    reply.last = static_cast<std::uint64_t>(cells.number());
    return {reply};
  }
  CallResult operator()(const AdoptRoutes&) const {
    IDEM_ASSERT(!"several statements");
    return {AdoptRoutes::Reply{}};
  }
  template <class Verb>
  CallResult operator()(const Verb&) const {
    IDEM_ASSERT(!"a batched call");
    return {OwnerReply{}};
  }

 private:
  CallResult outcome(const Token& token) const {
    if (rows.size() != 1) return {std::unexpected(damaged("no outcome"))};
    Cells cells(rows, 0);
    return to_outcome(cells, token);
  }
  CallResult verdict() const {
    if (rows.size() != 1) return {std::unexpected(damaged("no verdict"))};
    Cells cells(rows, 0);
    return {to_verdict(cells)};
  }
  CallResult steps() const {
    std::vector<LifecycleStep> made;
    for (int row = 0; row < rows.size(); ++row) {
      Cells cells(rows, row);
      LifecycleStep step{cells.id(), cells.state(), std::nullopt};
      const State after = cells.state();
      if (after != State{}) step.to = after;
      step.late = cells.millis();
      made.push_back(step);
    }
    return {std::move(made)};
  }
};

}  // namespace

Statement ask_one(const StoreCall& call) { return std::visit(Ask{}, call); }

CallResult results_of_one(const StoreCall& call, const Rows& rows) {
  return std::visit(ReplyDecoder{rows}, call);
}

}  // namespace idem::postgres
