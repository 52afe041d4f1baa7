#include "store/sqlite/internal_statements.hpp"

// The functions of schema/postgres/functions/63* to 66* as statements; their comments explain them.
// One thread runs them all, between BEGIN and COMMIT, so nothing here locks.
namespace idem::sqlite {
namespace {

constexpr std::string_view put_message =
    "INSERT INTO idem_outbox (id, operation, destination, aggregatetype, aggregateid, type, "
    "payload,"
    " content_type, created_at, due_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, idem_now(),"
    " idem_now())";

constexpr std::string_view claim_messages = R"(
  UPDATE idem_outbox AS o SET
    claim = claim + 1,
    attempts = attempts + 1,
    due_at = idem_now() + $3,
    claimed = 1,
    in_flight = NOT $5,
    ambiguous = ambiguous OR in_flight,
    no_call_in_flight_since = CASE WHEN in_flight THEN idem_now() ELSE no_call_in_flight_since END,
    first_at = CASE WHEN ambiguous OR in_flight THEN first_at ELSE idem_now() END,
    repeat_until = CASE WHEN ambiguous OR in_flight THEN first_at ELSE idem_now() END + $4
  WHERE seq IN (
    SELECT d.seq FROM idem_outbox d
      WHERE d.destination = $1 AND d.state = 'waiting' AND d.due_at <= idem_now()
        AND (d.aggregateid = '' OR NOT EXISTS (
          SELECT 1 FROM idem_outbox e
            WHERE e.destination = d.destination AND e.state = 'waiting' AND e.aggregateid <> ''
              AND e.aggregatetype = d.aggregatetype AND e.aggregateid = d.aggregateid
              AND (e.seq < d.seq OR (e.seq > d.seq AND e.claimed AND e.due_at > idem_now()))))
      ORDER BY d.due_at, d.seq LIMIT $2)
  RETURNING seq, id, operation, aggregatetype, aggregateid, type, payload, content_type,
    created_at, attempts, claim, ambiguous, repeat_until - idem_now(),
    idem_now() - no_call_in_flight_since)";

constexpr std::string_view note_delivery = R"(
  UPDATE idem_outbox SET
    state = CASE $3 WHEN 'delivered' THEN 'delivered' WHEN 'dead' THEN 'dead' ELSE state END,
    reference = CASE WHEN $4 <> '' THEN $4 ELSE reference END,
    due_at = CASE WHEN $3 IN ('put_off', 'unseen', 'given_back') THEN idem_now() + $6
             ELSE due_at END,
    attempts = attempts - ($3 = 'given_back'),
    claimed = 0,
    in_flight = 0,
    ambiguous = $7,
    no_call_in_flight_since = CASE WHEN NOT $7 THEN NULL
      WHEN $3 IN ('given_back', 'unseen') THEN no_call_in_flight_since ELSE idem_now() END,
    last_error = CASE $3 WHEN 'delivered' THEN '' ELSE $5 END,
    history = CASE $3 WHEN 'given_back' THEN history ELSE json_insert(history, '$[#]',
      json_object('at', idem_now(), 'attempt', attempts, 'how', $3, 'why', $5)) END,
    ended_at = CASE WHEN $3 IN ('delivered', 'dead') THEN idem_now() END
  WHERE seq = $1 AND claim = $2 AND state = 'waiting' AND claimed
  RETURNING 1)";

constexpr std::string_view note_sending =
    "UPDATE idem_outbox SET in_flight = 1"
    " WHERE seq = $1 AND claim = $2 AND state = 'waiting' AND claimed RETURNING 1";

#define IDEM_MESSAGE_COLUMNS                                                                      \
  "seq, id, operation, destination, type, aggregatetype, aggregateid, state, created_at, due_at," \
  " attempts, in_flight, ambiguous, reference, last_error, ended_at"

constexpr std::string_view list_messages =
    "SELECT " IDEM_MESSAGE_COLUMNS
    " FROM idem_outbox WHERE ($1 = '' OR state = $1)"
    " AND ($2 = '' OR destination = $2) AND seq > $3 ORDER BY seq LIMIT $4";
constexpr std::string_view messages_of_record =
    "SELECT " IDEM_MESSAGE_COLUMNS
    " FROM idem_outbox WHERE operation = $1 AND ($2 = '' OR state = $2)"
    " AND ($3 = '' OR destination = $3) AND seq > $4 ORDER BY seq LIMIT $5";
constexpr std::string_view find_message = "SELECT " IDEM_MESSAGE_COLUMNS
                                          ", content_type, payload, history FROM idem_outbox"
                                          " WHERE id = $1";
constexpr std::string_view hasten_message =
    "UPDATE idem_outbox SET due_at = idem_now()"
    " WHERE id = $1 AND state = 'waiting' AND NOT claimed RETURNING 1";
constexpr std::string_view count_messages =
    "SELECT destination, state, count(*), idem_now() - min(created_at) FROM idem_outbox"
    " WHERE state IN ('waiting', 'dead') GROUP BY destination, state"
    " ORDER BY destination, state";

#define IDEM_DEAD_CHOSEN                                                            \
  "state = 'dead' AND ($1 IS NULL OR destination = $1) AND ($2 IS NULL OR id = $2)" \
  " AND ($3 IS NULL OR type = $3) ORDER BY seq LIMIT $4"
#define IDEM_MAY_HAVE_ARRIVED "(ambiguous AND NOT $6 AND coalesce(repeat_until <= idem_now(), 1))"

constexpr std::string_view redrive =
    "WITH chosen AS MATERIALIZED (SELECT seq, " IDEM_MAY_HAVE_ARRIVED
    " AS refused FROM idem_outbox WHERE " IDEM_DEAD_CHOSEN
    "), spaced AS MATERIALIZED (SELECT seq, refused,"
    " row_number() OVER (PARTITION BY refused ORDER BY seq) - 1 AS place FROM chosen)"
    " UPDATE idem_outbox SET"
    " state = CASE s.refused WHEN 1 THEN state ELSE 'waiting' END,"
    " attempts = CASE s.refused WHEN 1 THEN attempts ELSE 0 END,"
    " due_at = CASE s.refused WHEN 1 THEN due_at ELSE idem_now() + s.place * $5 END,"
    " ended_at = CASE s.refused WHEN 1 THEN ended_at END,"
    " ambiguous = CASE s.refused WHEN 1 THEN ambiguous ELSE ambiguous AND NOT $6 END,"
    " history = CASE s.refused WHEN 1 THEN history ELSE json_insert(history, '$[#]',"
    "   json_object('at', idem_now(), 'how',"
    "   CASE WHEN $6 THEN 'redriven: nothing was there' ELSE 'redriven' END, 'why', $7)) END"
    " FROM spaced s WHERE idem_outbox.seq = s.seq"
    " RETURNING id, destination, type,"
    " CASE state WHEN 'dead' THEN 'may_have_arrived' ELSE 'redriven' END";
constexpr std::string_view try_redrive =
    "SELECT id, destination, type, CASE WHEN " IDEM_MAY_HAVE_ARRIVED
    " THEN 'may_have_arrived' ELSE 'redriven' END FROM idem_outbox WHERE " IDEM_DEAD_CHOSEN;
constexpr std::string_view discard =
    "UPDATE idem_outbox SET state = 'discarded', ended_at = idem_now(),"
    " history = json_insert(history, '$[#]',"
    "   json_object('at', idem_now(), 'how', 'discarded', 'why', $5))"
    " WHERE seq IN (SELECT seq FROM idem_outbox WHERE " IDEM_DEAD_CHOSEN
    ") RETURNING id, destination, type, 'discarded'";
constexpr std::string_view try_discard =
    "SELECT id, destination, type, 'discarded' FROM idem_outbox WHERE " IDEM_DEAD_CHOSEN;
constexpr std::string_view reap_messages =
    "DELETE FROM idem_outbox WHERE seq IN (SELECT seq FROM idem_outbox"
    " WHERE state IN ('delivered', 'discarded') AND ended_at < idem_now() - $2 LIMIT $1)"
    " RETURNING 1";

// A new record overwrites a row that an earlier record of that id left before any of its phases
// committed. A record with a recovery point but without a row was released by an operator after its
// end: the next phase's calls may have been sent.
constexpr std::string_view open_flow = R"(
  INSERT INTO idem_flows AS f (id, operation, input, point, next, point_at, attempts, due_at, token,
                               nothing_open, no_call_in_flight_since)
    VALUES ($1, $2, $3, CASE $8 WHEN '' THEN 'started' ELSE $8 END,
            CASE $8 WHEN '' THEN $7 ELSE '' END, idem_now(), 1, idem_now() + $4, $5,
            $8 = '' AND $6, CASE WHEN $8 <> '' THEN idem_now() END)
  ON CONFLICT (id) DO UPDATE SET
    input = CASE WHEN $8 = '' AND point = 'started' AND token <> $5 THEN $3 ELSE input END,
    next = CASE WHEN $8 = '' AND point = 'started' AND token <> $5 THEN $7 ELSE next END,
    point_at = CASE WHEN $8 = '' AND point = 'started' AND token <> $5 THEN idem_now()
               ELSE point_at END,
    attempts = CASE WHEN $8 = '' AND point = 'started' AND token <> $5 THEN 1
               ELSE attempts + (token <> $5) END,
    due_at = excluded.due_at,
    token = $5,
    nothing_open = CASE WHEN $8 = '' AND point = 'started' AND token <> $5 THEN $6
                   ELSE nothing_open AND token = $5 END,
    no_call_in_flight_since = CASE WHEN $8 = '' AND point = 'started' AND token <> $5 THEN NULL
                  WHEN token = $5 THEN no_call_in_flight_since WHEN nothing_open THEN NULL
                  ELSE coalesce(no_call_in_flight_since, idem_now()) END
  RETURNING point, idem_now() - point_at, attempts, idem_now() - no_call_in_flight_since, next,
    input)";
constexpr std::string_view pass_phase =
    "UPDATE idem_flows SET point = $3, point_at = idem_now(), no_call_in_flight_since = NULL,"
    " due_at = idem_now() + $4, nothing_open = $5, next = $6"
    " WHERE id = $1 AND point = $2 RETURNING 1";
constexpr std::string_view find_point = "SELECT point FROM idem_flows WHERE id = $1";
constexpr std::string_view note_call =
    "UPDATE idem_flows SET no_call_in_flight_since = NULL, nothing_open = 0, next = $3"
    " WHERE id = $1 AND token = $2 RETURNING 1";
constexpr std::string_view rest_flow =
    "UPDATE idem_flows SET nothing_open = 1, due_at = idem_now() + $3,"
    " attempts = CASE WHEN $4 THEN 0 ELSE max(attempts - 1, 0) END"
    " WHERE id = $1 AND token = $2";
constexpr std::string_view close_flow = "DELETE FROM idem_flows WHERE id = $1 AND token = $2";
constexpr std::string_view due_flows =
    "SELECT id, input, point, token FROM idem_flows WHERE operation = $1 AND due_at <= idem_now()"
    " ORDER BY due_at LIMIT $2";
constexpr std::string_view postpone_flow =
    "UPDATE idem_flows SET due_at = idem_now() + $2 WHERE id = $1";

}  // namespace

std::string_view text_of(InternalStatement statement) noexcept {
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

}  // namespace idem::sqlite
