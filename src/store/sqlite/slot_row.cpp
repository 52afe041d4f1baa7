#include "store/sqlite/slot_row.hpp"

#include "core/transitions.hpp"

#include <algorithm>

namespace idem::sqlite {

const std::string_view insert_slot =
    "INSERT INTO slots (state, fence, token, owner, locked_until, dispatched, lease_policy,"
    " retention, tombstone, recovery_point, request_stored, release_basis, last_error_code,"
    " reconcile_after, reconcile_attempts, upstream_reference, changed_at, completed_at, "
    "expires_at,"
    " tombstone_until, due_at, id, scope, operation, fingerprint_version, fingerprint, created_at)"
    " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,?21,?22,?23,"
    "?24,?25,?26,?27)";

const std::string_view update_slot =
    "UPDATE slots SET state=?1, fence=?2, token=?3, owner=?4, locked_until=?5, dispatched=?6,"
    " lease_policy=?7, retention=?8, tombstone=?9, recovery_point=?10, request_stored=?11,"
    " release_basis=?12, last_error_code=?13, reconcile_after=?14, reconcile_attempts=?15,"
    " upstream_reference=?16, changed_at=?17, completed_at=?18, expires_at=?19,"
    " tombstone_until=?20, due_at=?21 WHERE slot=?22";

namespace {

std::int64_t number(StoreTime moment) { return moment.time_since_epoch().count(); }

void bind_moment(Statement& statement, int at, const std::optional<StoreTime>& moment) {
  if (moment) {
    statement.bind(at, number(*moment));
  } else {
    statement.bind_null(at);
  }
}

/// The members that change after the insert: parameters 1 to 21 of both statements.
void bind_changing(Statement& s, const Record& record) {
  s.bind(1, static_cast<std::int64_t>(record.state));
  s.bind(2, static_cast<std::int64_t>(record.attempt.fence));
  s.bind_bytes(3, record.attempt.token.bytes);
  s.bind_text(4, record.owner);
  s.bind(5, number(record.locked_until));
  s.bind(6, record.dispatched ? 1 : 0);
  s.bind(7, static_cast<std::int64_t>(record.lease_policy));
  s.bind(8, record.retention.count());
  s.bind(9, record.tombstone.count());
  s.bind_text(10, record.recovery_point);
  s.bind(11, record.stored_request ? 1 : 0);
  if (record.release_basis) {
    s.bind(12, static_cast<std::int64_t>(*record.release_basis));
  } else {
    s.bind_null(12);
  }
  s.bind_text(13, record.last_error_code);
  bind_moment(s, 14, record.reconcile_after);
  s.bind(15, record.reconcile_attempts);
  s.bind_text(16, record.upstream_reference);
  s.bind(17, number(record.changed_at));
  bind_moment(s, 18, record.completed_at);
  bind_moment(s, 19, record.expires_at);
  bind_moment(s, 20, record.tombstone_until);
  bind_moment(s, 21, transitions::due_at(record));
}

template <std::size_t N>
bool read_array(Statement& row, int at, std::array<std::uint8_t, N>& out) {
  const std::string_view bytes = row.bytes(at);
  if (bytes.size() != N) return false;
  std::ranges::transform(bytes, out.begin(), [](char c) { return static_cast<std::uint8_t>(c); });
  return true;
}

StoreTime moment(Statement& row, int at) { return StoreTime(Millis(row.integer(at))); }

std::optional<StoreTime> maybe_moment(Statement& row, int at) {
  if (row.is_null(at)) return std::nullopt;
  return moment(row, at);
}

std::string text(Statement& row, int at) { return std::string(row.bytes(at)); }

template <class Enum>
bool read_enum(Statement& row, int at, int last, Enum& out) {
  const std::int64_t value = row.integer(at);
  out = static_cast<Enum>(value);
  return value >= 1 && value <= last;
}

/// What the transitions rely on in each state.
bool is_consistent(const Record& record) {
  switch (record.state) {
    case State::pending:
      return record.stored_request && record.expires_at;
    case State::in_progress:
    case State::unknown:
      return record.attempt.fence != 0;
    case State::failed_retryable:
      return record.expires_at.has_value();
    case State::completed:
    case State::expired:
      return record.completed_at && record.expires_at && record.tombstone_until;
  }
  return false;
}

}  // namespace

void bind_insert(Statement& statement, const Record& record) {
  bind_changing(statement, record);
  statement.bind_bytes(22, record.id.bytes);
  statement.bind_text(23, record.scope);
  statement.bind_text(24, record.operation);
  statement.bind(25, record.fingerprint.version);
  statement.bind_bytes(26, record.fingerprint.digest);
  statement.bind(27, number(record.created_at));
}

void bind_update(Statement& statement, const Record& record, std::int64_t slot) {
  bind_changing(statement, record);
  statement.bind(22, slot);
}

std::expected<Record, std::string> read_slot(Statement& row) {
  Record record;
  if (!read_array(row, 1, record.id.bytes)) return std::unexpected("its id is not 16 bytes");
  record.scope = text(row, 2);
  record.operation = text(row, 3);
  record.fingerprint.version = static_cast<std::uint32_t>(row.integer(4));
  if (!read_array(row, 5, record.fingerprint.digest)) {
    return std::unexpected("its fingerprint is not 32 bytes");
  }
  record.created_at = moment(row, 6);
  if (!read_enum(row, 7, 6, record.state)) return std::unexpected("its state is none of ours");
  record.attempt.fence = static_cast<Fence>(row.integer(8));
  if (!read_array(row, 9, record.attempt.token.bytes)) {
    return std::unexpected("its token is not 16 bytes");
  }
  record.owner = text(row, 10);
  record.locked_until = moment(row, 11);
  record.dispatched = row.integer(12) != 0;
  if (!read_enum(row, 13, 3, record.lease_policy)) {
    return std::unexpected("its lease policy is none of ours");
  }
  record.retention = Millis(row.integer(14));
  record.tombstone = Millis(row.integer(15));
  record.recovery_point = text(row, 16);
  if (row.integer(17) != 0) record.stored_request.emplace();
  if (!row.is_null(18) && !read_enum(row, 18, 2, record.release_basis.emplace())) {
    return std::unexpected("its release basis is none of ours");
  }
  record.last_error_code = text(row, 19);
  record.reconcile_after = maybe_moment(row, 20);
  record.reconcile_attempts = static_cast<std::uint32_t>(row.integer(21));
  record.upstream_reference = text(row, 22);
  record.changed_at = moment(row, 23);
  record.completed_at = maybe_moment(row, 24);
  record.expires_at = maybe_moment(row, 25);
  record.tombstone_until = maybe_moment(row, 26);
  if (!is_consistent(record)) return std::unexpected("it lacks what its state needs");
  return record;
}

}  // namespace idem::sqlite
