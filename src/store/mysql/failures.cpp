#include "store/mysql/failures.hpp"

#include <mysqld_error.h>

#include <algorithm>

namespace idem::mysql {
namespace {

// Of MySQL alone: MariaDB's header has other meanings for these numbers, or none.
constexpr unsigned lock_nowait = 3572;
constexpr unsigned replica_is_read_only = 1836;

bool is_one_of(const Failure& failure, std::initializer_list<unsigned> codes) noexcept {
  return std::ranges::find(codes, failure.code) != codes.end();
}

}  // namespace

bool is_duplicate(const Failure& failure) noexcept { return is_one_of(failure, {ER_DUP_ENTRY}); }

bool is_lock_wait(const Failure& failure) noexcept {
  return is_one_of(failure, {ER_LOCK_WAIT_TIMEOUT, lock_nowait});
}

// ER_SERVER_SHUTDOWN, ER_CONNECTION_KILLED of MariaDB, ER_SESSION_WAS_KILLED and
// ER_CLIENT_INTERACTION_TIMEOUT of MySQL, CR_* of both clients.
bool ends_session(unsigned code) noexcept {
  return code == 0 || code == 1053 || code == 1927 || code == 3169 || code == 4031 ||
         (code >= 2000 && code < 3000) || (code >= 5000 && code < 6000);
}

bool is_race(const Failure& failure) noexcept {
  return is_duplicate(failure) || is_lock_wait(failure) ||
         is_one_of(failure,
                   {ER_LOCK_DEADLOCK, ER_CHECKREAD, ER_QUERY_INTERRUPTED, ER_TABLE_DEF_CHANGED});
}

bool is_other_server(const Failure& failure) noexcept {
  return is_one_of(failure, {ER_OPTION_PREVENTS_STATEMENT, replica_is_read_only,
                             ER_UNKNOWN_COM_ERROR, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION});
}

bool may_be_another_store(const Failure& failure) noexcept {
  return is_one_of(failure, {ER_NO_SUCH_TABLE, ER_SP_DOES_NOT_EXIST, ER_BAD_DB_ERROR,
                             ER_BAD_FIELD_ERROR, ER_NO_DB_ERROR});
}

bool is_refusal(const Failure& failure) noexcept {
  return is_one_of(failure, {ER_SIGNAL_EXCEPTION});
}

bool is_unstorable(const Failure& failure) noexcept {
  return is_one_of(
      failure, {ER_DATA_TOO_LONG, ER_WARN_DATA_OUT_OF_RANGE, ER_BAD_NULL_ERROR,
                ER_TRUNCATED_WRONG_VALUE_FOR_FIELD, ER_TOO_BIG_ROWSIZE, ER_NET_PACKET_TOO_LARGE});
}

}  // namespace idem::mysql
