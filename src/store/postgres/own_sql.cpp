#include "store/postgres/own_sql.hpp"

namespace idem::postgres {
namespace {

#define IDEM_MS(moment) "round(extract(epoch FROM " moment ") * 1000)::bigint"
#define IDEM_MESSAGE_COLUMNS \
  "o.seq, encode(uuid_send(o.id), 'hex'), encode(uuid_send(o.operation), 'hex'), o.destination," \
  " o.type, o.aggregatetype, o.aggregateid, o.state::text, " IDEM_MS("o.created_at")            \
  ", " IDEM_MS("o.due_at") ", o.attempts, o.in_flight::integer, o.ambiguous::integer,"          \
  " o.reference, o.last_error, " IDEM_MS("o.ended_at")
#define IDEM_REDRIVE(dry_run)                                                        \
  "SELECT * FROM idem.redrive($1::text, $2::uuid, $3::text, $4::bigint, $5::bigint," \
  " $6::bigint <> 0, " dry_run ", $7::text)"
#define IDEM_DISCARD(dry_run) \
  "SELECT * FROM idem.discard($1::text, $2::uuid, $3::text, $4::bigint, " dry_run ", $5::text)"

}  // namespace

std::string_view text_of(OwnStatement statement) noexcept {
  switch (statement) {
    case OwnStatement::put_message:
      return "SELECT idem.put_message($1::uuid, $2::uuid, $3::text, $4::text, $5::text, $6::text,"
             " $7::text, $8::text)";
    case OwnStatement::claim_messages:
      return "SELECT * FROM idem.claim_messages($1::text, $2::bigint, $3::bigint, $4::bigint,"
             " $5::bigint)";
    case OwnStatement::note_delivery:
      return "SELECT * FROM idem.note_delivery($1::bigint, $2::bigint, $3::text, $4::text,"
             " $5::text, $6::bigint, $7::bigint <> 0)";
    case OwnStatement::note_sending:
      return "SELECT * FROM idem.note_sending($1::bigint, $2::bigint)";
    case OwnStatement::list_messages:
      return "SELECT " IDEM_MESSAGE_COLUMNS
             " FROM idem.outbox o WHERE ($1::text = '' OR o.state::text = $1::text)"
             " AND ($2::text = '' OR o.destination = $2::text) AND o.seq > $3::bigint"
             " ORDER BY o.seq LIMIT $4::bigint";
    case OwnStatement::find_message:
      return "SELECT " IDEM_MESSAGE_COLUMNS
             ", o.content_type, o.payload, o.history::text FROM idem.outbox o"
             " WHERE o.id = $1::uuid";
    case OwnStatement::hasten_message:
      return "UPDATE idem.outbox SET due_at = idem.now()"
             " WHERE id = $1::uuid AND state = 'waiting' AND NOT claimed RETURNING 1";
    case OwnStatement::count_messages:
      return "SELECT o.destination, o.state::text, count(*),"
             " idem.ms_until(idem.now(), min(o.created_at))"
             " FROM idem.outbox o WHERE o.state = 'waiting' GROUP BY o.destination, o.state"
             " UNION ALL SELECT o.destination, o.state::text, count(*),"
             " idem.ms_until(idem.now(), min(o.created_at))"
             " FROM idem.outbox o WHERE o.state = 'dead' GROUP BY o.destination, o.state"
             " ORDER BY 1, 2";
    case OwnStatement::redrive:
      return IDEM_REDRIVE("false");
    case OwnStatement::try_redrive:
      return IDEM_REDRIVE("true");
    case OwnStatement::discard:
      return IDEM_DISCARD("false");
    case OwnStatement::try_discard:
      return IDEM_DISCARD("true");
    case OwnStatement::reap_messages:
      return "SELECT * FROM idem.reap_messages($1::bigint, $2::bigint)";
    case OwnStatement::open_flow:
      return "SELECT * FROM idem.open_flow($1::uuid, $2::text, $3::bytea, $4::bigint,"
             " $5::uuid, $6::bigint, $7::text, $8::text)";
    case OwnStatement::pass_phase:
      return "SELECT * FROM idem.pass_phase($1::uuid, $2::text, $3::text, $4::bigint,"
             " $5::bigint, $6::text)";
    case OwnStatement::find_point:
      return "SELECT f.point FROM idem.flows f WHERE f.id = $1::uuid";
    case OwnStatement::note_call:
      return "SELECT * FROM idem.note_call($1::uuid, $2::uuid, $3::text)";
    case OwnStatement::rest_flow:
      return "UPDATE idem.flows SET nothing_open = true, due_at = idem.now() + idem.ms($3::bigint),"
             " attempts = CASE WHEN $4::bigint <> 0 THEN 0 ELSE greatest(attempts - 1, 0) END"
             " WHERE id = $1::uuid AND token = $2::uuid";
    case OwnStatement::close_flow:
      return "DELETE FROM idem.flows WHERE id = $1::uuid AND token = $2::uuid";
    case OwnStatement::due_flows:
      return "SELECT * FROM idem.due_flows($1::text, $2::bigint)";
    case OwnStatement::put_off_flow:
      return "UPDATE idem.flows SET due_at = idem.now() + idem.ms($2::bigint)"
             " WHERE id = $1::uuid";
  }
  return {};
}

}  // namespace idem::postgres
