#include "core/bytes/ascii.hpp"
#include "core/exchange/policy.hpp"
#include "core/record/stored_response_codec.hpp"
#include "core/transitions/verb_check.hpp"
#include "store/postgres/libpq.hpp"

#include <idem/assert.hpp>
#include <idem/postgres.hpp>
#include <idem/store.hpp>

#include <libpq-fe.h>

namespace idem::inline v0_1 {
namespace {

using postgres::Failure;
using postgres::Params;
using postgres::Rows;

// idem.complete() with the stored form of the fields: a value may have any byte but CR, LF and NUL.
constexpr const char* complete_sql =
    "SELECT idem.must('complete', $1, idem.try_owner('complete', $1, $2, $3, NULL, NULL, $4, $5, "
    "$6,"
    " NULL, NULL, NULL))";
constexpr const char* advance_sql = "SELECT idem.advance($1, $2, $3, $4)";
/// Fails, and so does the transaction.
constexpr const char* refuse_sql =
    "SELECT idem.try_advance(NULL::pg_catalog.uuid, NULL::bigint, NULL::pg_catalog.uuid,"
    " ''::pg_catalog.text)";

std::expected<void, PostgresError> ask(pg_conn* connection, const char* sql, const Params& params) {
  const Params::Raw raw = params.raw();
  const Rows rows(PQexecParams(connection, sql, params.size(), raw.types.data(), raw.values.data(),
                               raw.lengths.data(), raw.formats.data(), 1));
  if (postgres::was_answered(rows.result())) return {};
  auto failure = postgres::failure_of(rows.result());
  if (!failure || PQstatus(connection) != CONNECTION_OK) {
    return std::unexpected(PostgresError{{}, postgres::trouble_of(connection)});
  }
  return std::unexpected(PostgresError{std::move(failure->sqlstate), std::move(failure->message)});
}

std::expected<void, PostgresError> ask_for(pg_conn* connection, const StoreCall& call,
                                           const char* sql, const Params& params) {
  IDEM_ASSERT(connection != nullptr);
  if (PQstatus(connection) != CONNECTION_OK) {
    return std::unexpected(PostgresError{{}, postgres::trouble_of(connection)});
  }
  // Without one, the statement would commit at once, without the rows.
  const auto status = PQtransactionStatus(connection);
  if ((status != PQTRANS_INTRANS && status != PQTRANS_INERROR) ||
      PQpipelineStatus(connection) != PQ_PIPELINE_OFF) {
    return std::unexpected(PostgresError{"25P01", "no transaction is open"});
  }
  auto bad = what_is_wrong(call);
  if (!bad) return ask(connection, sql, params);
  (void)ask(connection, refuse_sql, Params());
  return std::unexpected(PostgresError{"IDM05", std::move(*bad)});
}

Params of_attempt(const RecordId& id, const AttemptRef& attempt) {
  Params params;
  params.uuid(id.bytes).fence(attempt.fence).uuid(attempt.token.bytes);
  return params;
}

}  // namespace

std::expected<void, PostgresError> complete_on(pg_conn* connection, const RecordId& id,
                                               const AttemptRef& attempt,
                                               const StoredResponse& response,
                                               std::string_view upstream_reference) {
  // As every face does (protocol.md §14).
  StoredResponse stored = response;
  keep_storable(stored.headers);
  for (Field& field : stored.headers) field.value = std::string(trimmed(field.value));
  std::string head;
  encode_answer(stored, head);
  Params params = of_attempt(id, attempt);
  params.bytes(head).bytes(response.body).text(postgres::as_text(upstream_reference));
  const StoreCall call(Complete{id, attempt, response, std::string(upstream_reference)});
  return ask_for(connection, call, complete_sql, params);
}

std::expected<void, PostgresError> advance_on(pg_conn* connection, const RecordId& id,
                                              const AttemptRef& attempt,
                                              std::string_view recovery_point) {
  Params params = of_attempt(id, attempt);
  params.text(postgres::as_text(recovery_point));
  const StoreCall call(Advance{id, attempt, std::string(recovery_point)});
  return ask_for(connection, call, advance_sql, params);
}

}  // namespace idem::inline v0_1
