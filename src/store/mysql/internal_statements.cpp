#include "store/mysql/internal_statements.hpp"

// The functions of schema/postgres/functions/63* to 66* as statements; their comments explain them.
// Ids are hexadecimal texts outside, and bytes in the tables.
namespace idem::mysql {
namespace {

constexpr InternalText put_message{
    "CALL idem_put_message(UNHEX($1), UNHEX($2), $3, $4, $5, $6, $7, $8)"};

// The row's values are those that the change gives it. An UPDATE assigns from left to right, so it
// goes from the values that need the old ones to those that replace them.
constexpr InternalText claim_messages{
    "SELECT o.seq, LOWER(HEX(o.id)), LOWER(HEX(o.operation)), CONVERT(o.aggregatetype USING "
    "utf8mb4),"
    " CONVERT(o.aggregateid USING utf8mb4), CONVERT(o.type USING utf8mb4), o.payload,"
    " CONVERT(o.content_type USING utf8mb4), o.created_at, o.attempts + 1, o.claim + 1,"
    " o.ambiguous OR o.in_flight,"
    " IF(o.ambiguous OR o.in_flight, o.first_at, n.at) + $4 - n.at,"
    " n.at - IF(o.in_flight, n.at, o.no_call_in_flight_since), o.seq"
    " FROM (SELECT idem_now() AS at) n JOIN idem_outbox o"
    " WHERE o.destination = $1 AND o.state = 'waiting' AND o.due_at <= n.at"
    " AND (o.aggregateid = '' OR NOT EXISTS ("
    "   SELECT 1 FROM idem_outbox e WHERE e.destination = o.destination AND e.state = 'waiting'"
    "     AND e.aggregateid <> '' AND e.aggregatetype = o.aggregatetype"
    "     AND e.aggregateid = o.aggregateid"
    "     AND (e.seq < o.seq OR (e.seq > o.seq AND e.claimed AND e.due_at > n.at))))"
    " ORDER BY o.due_at, o.seq LIMIT $2 FOR UPDATE SKIP LOCKED",
    "UPDATE idem_outbox o JOIN (SELECT idem_now() AS at) n SET"
    " o.first_at = IF(o.ambiguous OR o.in_flight, o.first_at, n.at),"
    " o.no_call_in_flight_since = IF(o.in_flight, n.at, o.no_call_in_flight_since),"
    " o.repeat_until = o.first_at + $4,"
    " o.ambiguous = o.ambiguous OR o.in_flight,"
    " o.in_flight = NOT $5,"
    " o.claim = o.claim + 1, o.attempts = o.attempts + 1, o.due_at = n.at + $3, o.claimed = 1"
    " WHERE o.seq IN ({})"};

constexpr InternalText note_delivery{
    "UPDATE idem_outbox o JOIN (SELECT idem_now() AS at) n SET"
    " o.history = IF($3 = 'given_back', o.history, JSON_ARRAY_APPEND(o.history, '$',"
    "   JSON_OBJECT('at', n.at, 'attempt', o.attempts, 'how', $3, 'why', $5))),"
    " o.reference = IF($4 <> '', $4, o.reference),"
    " o.due_at = IF($3 IN ('put_off', 'unseen', 'given_back'), n.at + $6, o.due_at),"
    " o.attempts = o.attempts - ($3 = 'given_back'),"
    " o.claimed = 0, o.in_flight = 0, o.ambiguous = $7,"
    " o.no_call_in_flight_since = CASE WHEN NOT $7 THEN NULL"
    "   WHEN $3 IN ('given_back', 'unseen') THEN o.no_call_in_flight_since ELSE n.at END,"
    " o.last_error = IF($3 = 'delivered', '', $5),"
    " o.ended_at = IF($3 IN ('delivered', 'dead'), n.at, NULL),"
    " o.state = CASE $3 WHEN 'delivered' THEN 'delivered' WHEN 'dead' THEN 'dead' ELSE o.state END"
    " WHERE o.seq = $1 AND o.claim = $2 AND o.state = 'waiting' AND o.claimed",
    {},
    true};

constexpr InternalText note_sending{
    "UPDATE idem_outbox SET in_flight = 1"
    " WHERE seq = $1 AND claim = $2 AND state = 'waiting' AND claimed",
    {},
    true};

#define IDEM_MESSAGE_COLUMNS                                                             \
  "seq, LOWER(HEX(id)), LOWER(HEX(operation)), CONVERT(destination USING utf8mb4),"      \
  " CONVERT(type USING utf8mb4), CONVERT(aggregatetype USING utf8mb4),"                  \
  " CONVERT(aggregateid USING utf8mb4), state, created_at, due_at, attempts, in_flight," \
  " ambiguous, CONVERT(reference USING utf8mb4), last_error, ended_at"

constexpr InternalText list_messages{"SELECT " IDEM_MESSAGE_COLUMNS
                                     " FROM idem_outbox WHERE ($1 = '' OR state = $1)"
                                     " AND ($2 = '' OR destination = $2) AND seq > $3"
                                     " ORDER BY seq LIMIT $4"};
constexpr InternalText messages_of_record{
    "SELECT " IDEM_MESSAGE_COLUMNS
    " FROM idem_outbox WHERE operation = UNHEX($1) AND ($2 = '' OR state = $2)"
    " AND ($3 = '' OR destination = $3) AND seq > $4 ORDER BY seq LIMIT $5"};
constexpr InternalText find_message{
    "SELECT " IDEM_MESSAGE_COLUMNS
    ", CONVERT(content_type USING utf8mb4), payload, history FROM idem_outbox"
    " WHERE id = UNHEX($1)"};
constexpr InternalText hasten_message{
    "UPDATE idem_outbox SET due_at = idem_now()"
    " WHERE id = UNHEX($1) AND state = 'waiting' AND NOT claimed",
    {},
    true};
constexpr InternalText count_messages{
    "SELECT CONVERT(destination USING utf8mb4), state, count(*), idem_now() - min(created_at)"
    " FROM idem_outbox WHERE state IN ('waiting', 'dead') GROUP BY destination, state"
    " ORDER BY destination, CAST(state AS CHAR)"};

#define IDEM_DEAD_CHOSEN                                \
  "state = 'dead' AND ($1 IS NULL OR destination = $1)" \
  " AND ($2 IS NULL OR id = UNHEX($2)) AND ($3 IS NULL OR type = $3) ORDER BY seq LIMIT $4"
#define IDEM_ORDERED                                           \
  "SELECT LOWER(HEX(id)), CONVERT(destination USING utf8mb4)," \
  " CONVERT(type USING utf8mb4), "
#define IDEM_MAY_HAVE_ARRIVED "(ambiguous AND NOT $6 AND COALESCE(repeat_until <= idem_now(), 1))"
#define IDEM_REDRIVEN                              \
  IDEM_ORDERED "IF(" IDEM_MAY_HAVE_ARRIVED         \
               ", 'may_have_arrived', 'redriven')" \
               ", IF(" IDEM_MAY_HAVE_ARRIVED       \
               ", NULL, seq) FROM idem_outbox WHERE " IDEM_DEAD_CHOSEN

constexpr InternalText redrive{
    IDEM_REDRIVEN " FOR UPDATE SKIP LOCKED",
    "UPDATE idem_outbox o JOIN (SELECT idem_now() AS at) n SET o.state = 'waiting', o.attempts = 0,"
    " o.due_at = n.at + (FIND_IN_SET(o.seq, '{}') - 1) * $5, o.ended_at = NULL,"
    " o.ambiguous = o.ambiguous AND NOT $6,"
    " o.history = JSON_ARRAY_APPEND(o.history, '$', JSON_OBJECT('at', n.at, 'how',"
    "   IF($6, 'redriven: nothing was there', 'redriven'), 'why', $7)) WHERE o.seq IN ({})"};
constexpr InternalText try_redrive{IDEM_REDRIVEN};
constexpr InternalText discard{
    IDEM_ORDERED "'discarded', seq FROM idem_outbox WHERE " IDEM_DEAD_CHOSEN
                 " FOR UPDATE SKIP LOCKED",
    "UPDATE idem_outbox o JOIN (SELECT idem_now() AS at) n SET o.state = 'discarded',"
    " o.ended_at = n.at, o.history = JSON_ARRAY_APPEND(o.history, '$',"
    "   JSON_OBJECT('at', n.at, 'how', 'discarded', 'why', $5)) WHERE o.seq IN ({})"};
constexpr InternalText try_discard{IDEM_ORDERED
                                   "'discarded', seq FROM idem_outbox WHERE " IDEM_DEAD_CHOSEN};
constexpr InternalText reap_messages{
    "SELECT 1, seq FROM idem_outbox WHERE state IN ('delivered', 'discarded')"
    " AND ended_at < idem_now() - $2 LIMIT $1 FOR UPDATE SKIP LOCKED",
    "DELETE FROM idem_outbox WHERE seq IN ({})"};

// For a new record, a row that an earlier record left before its first phase committed means
// nothing. A record with a later point and without this row was released by an operator after its
// end: the next phase's call may have been sent.
#define IDEM_LEFT_OVER "($8 = '' AND point = 'started' AND token <> UNHEX($5))"
constexpr InternalText open_flow{
    "SELECT CONVERT(f.point USING utf8mb4), n.at - f.point_at, f.attempts,"
    " n.at - f.no_call_in_flight_since, CONVERT(f.next USING utf8mb4), f.input"
    " FROM (SELECT idem_now() AS at) n JOIN idem_flows f WHERE f.id = UNHEX($1)",
    "INSERT INTO idem_flows (id, operation, input, point, next, point_at, attempts, due_at, token,"
    "   nothing_open, no_call_in_flight_since)"
    " SELECT UNHEX($1), $2, $3, IF($8 = '', 'started', $8), IF($8 = '', $7, ''), n.at, 1, n.at + "
    "$4,"
    "   UNHEX($5), $8 = '' AND $6, IF($8 <> '', n.at, NULL) FROM (SELECT idem_now() AS at) n"
    " ON DUPLICATE KEY UPDATE"
    " input = IF(" IDEM_LEFT_OVER ", $3, input), next = IF(" IDEM_LEFT_OVER
    ", $7, next),"
    " point_at = IF(" IDEM_LEFT_OVER
    ", n.at, point_at),"
    " attempts = IF(" IDEM_LEFT_OVER
    ", 1, attempts + (token <> UNHEX($5))),"
    " no_call_in_flight_since = CASE WHEN " IDEM_LEFT_OVER
    " THEN NULL"
    "   WHEN token = UNHEX($5) THEN no_call_in_flight_since WHEN nothing_open THEN NULL"
    "   ELSE COALESCE(no_call_in_flight_since, n.at) END,"
    " nothing_open = IF(" IDEM_LEFT_OVER
    ", $6, nothing_open AND token = UNHEX($5)),"
    " due_at = n.at + $4, token = UNHEX($5)",
    false, true};
constexpr InternalText pass_phase{
    "UPDATE idem_flows f JOIN (SELECT idem_now() AS at) n SET f.point = $3, f.point_at = n.at,"
    " f.no_call_in_flight_since = NULL, f.due_at = n.at + $4, f.nothing_open = $5, f.next = $6"
    " WHERE f.id = UNHEX($1) AND f.point = $2",
    {},
    true};
constexpr InternalText find_point{
    "SELECT CONVERT(point USING utf8mb4) FROM idem_flows WHERE id = UNHEX($1)"};
constexpr InternalText note_call{
    "UPDATE idem_flows SET no_call_in_flight_since = NULL, nothing_open = 0, next = $3"
    " WHERE id = UNHEX($1) AND token = UNHEX($2)",
    {},
    true};
constexpr InternalText rest_flow{
    "UPDATE idem_flows SET nothing_open = 1, due_at = idem_now() + $3,"
    " attempts = IF($4, 0, GREATEST(attempts - 1, 0))"
    " WHERE id = UNHEX($1) AND token = UNHEX($2)",
    {},
    true};
constexpr InternalText close_flow{
    "DELETE FROM idem_flows WHERE id = UNHEX($1) AND token = UNHEX($2)", {}, true};
constexpr InternalText due_flows{
    "SELECT LOWER(HEX(id)), input, CONVERT(point USING utf8mb4), LOWER(HEX(token)) FROM idem_flows"
    " WHERE operation = $1 AND due_at <= idem_now() ORDER BY due_at LIMIT $2"};
constexpr InternalText postpone_flow{
    "UPDATE idem_flows SET due_at = idem_now() + $2 WHERE id = UNHEX($1)", {}, true};

}  // namespace

InternalText text_of(InternalStatement statement) noexcept {
  switch (statement) {
    case InternalStatement::put_message:
      return put_message;
    case InternalStatement::claim_messages:
      return claim_messages;
    case InternalStatement::note_delivery:
      return note_delivery;
    case InternalStatement::note_sending:
      return note_sending;
    case InternalStatement::list_messages:
      return list_messages;
    case InternalStatement::messages_of_record:
      return messages_of_record;
    case InternalStatement::find_message:
      return find_message;
    case InternalStatement::hasten_message:
      return hasten_message;
    case InternalStatement::count_messages:
      return count_messages;
    case InternalStatement::redrive:
      return redrive;
    case InternalStatement::try_redrive:
      return try_redrive;
    case InternalStatement::discard:
      return discard;
    case InternalStatement::try_discard:
      return try_discard;
    case InternalStatement::reap_messages:
      return reap_messages;
    case InternalStatement::open_flow:
      return open_flow;
    case InternalStatement::pass_phase:
      return pass_phase;
    case InternalStatement::find_point:
      return find_point;
    case InternalStatement::note_call:
      return note_call;
    case InternalStatement::rest_flow:
      return rest_flow;
    case InternalStatement::close_flow:
      return close_flow;
    case InternalStatement::due_flows:
      return due_flows;
    case InternalStatement::postpone_flow:
      return postpone_flow;
  }
  return {};
}

}  // namespace idem::mysql
