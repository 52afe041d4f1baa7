#include "store/postgres/failures.hpp"

#include "store/postgres/connection.hpp"

#include <algorithm>

namespace idem::postgres {
namespace {

/// By the first letters of SQLSTATE (PostgreSQL documentation, appendix A).
bool is_of(const Failure& failure, std::initializer_list<std::string_view> classes) {
  return std::ranges::any_of(
      classes, [&](std::string_view one) { return failure.sqlstate.starts_with(one); });
}

}  // namespace

// 23514: the table of an answer's day was made meanwhile. 23505: a transaction without the key's
// lock made it.
bool is_race(const Failure& failure) {
  return is_of(failure, {"40", "55P03", "23514", "23505", "IDM04"});
}

// serialization_failure, deadlock_detected, lock_not_available. Not all of class 40: a transaction
// that ended with 40003 may have been committed.
bool is_contention(std::string_view sqlstate) {
  return sqlstate == "40001" || sqlstate == "40P01" || sqlstate == "55P03";
}

bool is_other_server(const Failure& failure) { return is_of(failure, {"25006", "57P"}); }

// invalid_schema_name, undefined_table, undefined_function.
bool may_be_another_store(const Failure& failure) {
  return is_of(failure, {"3F000", "42P01", "42883", "IDM03"});
}

bool is_damage(const Failure& failure) { return failure.sqlstate == "IDM08"; }

bool is_refusal(const Failure& failure) { return is_of(failure, {"IDM"}); }

// Of class 22 those that a value alone causes: text that the server's encoding or a column cannot
// hold, a number out of range. The others may come from what lies in a table. Class 54 would be
// wrong: a server that is about to run out of transaction ids answers 54000 to every write, and
// goes on once it is vacuumed.
bool is_unstorable(const Failure& failure) {
  return is_of(failure, {"22001", "22003", "22008", "22021", "22P05"});
}

// feature_not_supported: a value compressed by a method that this server was built without.
// data_corrupted, index_corrupted.
bool may_be_of_one_call(const Failure& failure) {
  return is_refusal(failure) || is_of(failure, {"22", "54", "0A000", "XX001", "XX002"});
}

}  // namespace idem::postgres
