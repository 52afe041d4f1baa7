#include "store/postgres/internal_statements.hpp"

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

std::string_view text_of(InternalStatement statement) noexcept {
  switch (statement) {
    case InternalStatement::put_message:
      return "SELECT idem.put_message($1::pg_catalog.uuid, $2::pg_catalog.uuid,"
             " $3::pg_catalog.text, $4::pg_catalog.text, $5::pg_catalog.text, $6::pg_catalog.text,"
             " $7::pg_catalog.text, $8::pg_catalog.text)";
    case InternalStatement::claim_messages:
      return "SELECT * FROM idem.claim_messages($1::pg_catalog.text, $2::bigint, $3::bigint,"
             " $4::bigint, $5::bigint)";
    case InternalStatement::note_delivery:
      return "SELECT * FROM idem.note_delivery($1::bigint, $2::bigint, $3::pg_catalog.text,"
             " $4::pg_catalog.text, $5::pg_catalog.text, $6::bigint, " IDEM_IS_TRUE("$7") ")";
    case InternalStatement::note_sending:
      return "SELECT * FROM idem.note_sending($1::bigint, $2::bigint)";
    case InternalStatement::list_messages:
      return "SELECT * FROM idem.list_messages($1::pg_catalog.text, $2::pg_catalog.text,"
             " $3::bigint, $4::bigint)";
    case InternalStatement::messages_of_record:
      return "SELECT * FROM idem.messages_of_record($1::pg_catalog.uuid, $2::pg_catalog.text,"
             " $3::pg_catalog.text, $4::bigint, $5::bigint)";
    case InternalStatement::find_message:
      return "SELECT * FROM idem.find_message($1::pg_catalog.uuid)";
    case InternalStatement::hasten_message:
      return "SELECT * FROM idem.hasten_message($1::pg_catalog.uuid)";
    case InternalStatement::count_messages:
      return "SELECT * FROM idem.count_messages()";
    case InternalStatement::redrive:
      return IDEM_REDRIVE("false");
    case InternalStatement::try_redrive:
      return IDEM_REDRIVE("true");
    case InternalStatement::discard:
      return IDEM_DISCARD("false");
    case InternalStatement::try_discard:
      return IDEM_DISCARD("true");
    case InternalStatement::reap_messages:
      return "SELECT * FROM idem.reap_messages($1::bigint, $2::bigint)";
    case InternalStatement::open_flow:
      return "SELECT * FROM idem.open_flow($1::pg_catalog.uuid, $2::pg_catalog.text,"
             " $3::pg_catalog.bytea, $4::bigint, $5::pg_catalog.uuid, $6::bigint,"
             " $7::pg_catalog.text, $8::pg_catalog.text)";
    case InternalStatement::pass_phase:
      return "SELECT * FROM idem.pass_phase($1::pg_catalog.uuid, $2::pg_catalog.text,"
             " $3::pg_catalog.text, $4::bigint, $5::bigint, $6::pg_catalog.text)";
    case InternalStatement::find_point:
      return "SELECT * FROM idem.find_point($1::pg_catalog.uuid)";
    case InternalStatement::note_call:
      return "SELECT * FROM idem.note_call($1::pg_catalog.uuid, $2::pg_catalog.uuid,"
             " $3::pg_catalog.text)";
    case InternalStatement::rest_flow:
      return "SELECT * FROM idem.rest_flow($1::pg_catalog.uuid, $2::pg_catalog.uuid, $3::bigint,"
             " $4::bigint)";
    case InternalStatement::close_flow:
      return "SELECT * FROM idem.close_flow($1::pg_catalog.uuid, $2::pg_catalog.uuid)";
    case InternalStatement::due_flows:
      return "SELECT * FROM idem.due_flows($1::pg_catalog.text, $2::bigint)";
    case InternalStatement::postpone_flow:
      return "SELECT * FROM idem.postpone_flow($1::pg_catalog.uuid, $2::bigint)";
  }
  return {};
}

}  // namespace idem::postgres
