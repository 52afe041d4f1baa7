#include "store/postgres/own_sql.hpp"

namespace idem::postgres {
namespace {

// They name functions, operators and types by their schema, so no search path changes their
// meaning. `bigint` is grammar, and always the system's.
#define IDEM_IS_TRUE(parameter) parameter "::bigint OPERATOR(pg_catalog.<>) 0"
#define IDEM_REDRIVE(dry_run)                                                                 \
  "SELECT * FROM idem.redrive($1::pg_catalog.text, $2::pg_catalog.uuid, $3::pg_catalog.text," \
  " $4::bigint, $5::bigint, " IDEM_IS_TRUE("$6") ", " dry_run ", $7::pg_catalog.text)"
#define IDEM_DISCARD(dry_run)                                                                 \
  "SELECT * FROM idem.discard($1::pg_catalog.text, $2::pg_catalog.uuid, $3::pg_catalog.text," \
  " $4::bigint, " dry_run ", $5::pg_catalog.text)"

}  // namespace

std::string_view text_of(OwnStatement statement) noexcept {
  switch (statement) {
    case OwnStatement::put_message:
      return "SELECT idem.put_message($1::pg_catalog.uuid, $2::pg_catalog.uuid,"
             " $3::pg_catalog.text, $4::pg_catalog.text, $5::pg_catalog.text, $6::pg_catalog.text,"
             " $7::pg_catalog.text, $8::pg_catalog.text)";
    case OwnStatement::claim_messages:
      return "SELECT * FROM idem.claim_messages($1::pg_catalog.text, $2::bigint, $3::bigint,"
             " $4::bigint, $5::bigint)";
    case OwnStatement::note_delivery:
      return "SELECT * FROM idem.note_delivery($1::bigint, $2::bigint, $3::pg_catalog.text,"
             " $4::pg_catalog.text, $5::pg_catalog.text, $6::bigint, " IDEM_IS_TRUE("$7") ")";
    case OwnStatement::note_sending:
      return "SELECT * FROM idem.note_sending($1::bigint, $2::bigint)";
    case OwnStatement::list_messages:
      return "SELECT * FROM idem.list_messages($1::pg_catalog.text, $2::pg_catalog.text,"
             " $3::bigint, $4::bigint)";
    case OwnStatement::find_message:
      return "SELECT * FROM idem.find_message($1::pg_catalog.uuid)";
    case OwnStatement::hasten_message:
      return "SELECT * FROM idem.hasten_message($1::pg_catalog.uuid)";
    case OwnStatement::count_messages:
      return "SELECT * FROM idem.count_messages()";
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
      return "SELECT * FROM idem.open_flow($1::pg_catalog.uuid, $2::pg_catalog.text,"
             " $3::pg_catalog.bytea, $4::bigint, $5::pg_catalog.uuid, $6::bigint,"
             " $7::pg_catalog.text, $8::pg_catalog.text)";
    case OwnStatement::pass_phase:
      return "SELECT * FROM idem.pass_phase($1::pg_catalog.uuid, $2::pg_catalog.text,"
             " $3::pg_catalog.text, $4::bigint, $5::bigint, $6::pg_catalog.text)";
    case OwnStatement::find_point:
      return "SELECT * FROM idem.find_point($1::pg_catalog.uuid)";
    case OwnStatement::note_call:
      return "SELECT * FROM idem.note_call($1::pg_catalog.uuid, $2::pg_catalog.uuid,"
             " $3::pg_catalog.text)";
    case OwnStatement::rest_flow:
      return "SELECT * FROM idem.rest_flow($1::pg_catalog.uuid, $2::pg_catalog.uuid, $3::bigint,"
             " $4::bigint)";
    case OwnStatement::close_flow:
      return "SELECT * FROM idem.close_flow($1::pg_catalog.uuid, $2::pg_catalog.uuid)";
    case OwnStatement::due_flows:
      return "SELECT * FROM idem.due_flows($1::pg_catalog.text, $2::bigint)";
    case OwnStatement::postpone_flow:
      return "SELECT * FROM idem.postpone_flow($1::pg_catalog.uuid, $2::bigint)";
  }
  return {};
}

}  // namespace idem::postgres
