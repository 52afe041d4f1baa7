#pragma once

#include "store/mysql/connection.hpp"

/// What a failure of a statement means for the calls that it carried.
namespace idem::mysql {

/// The session is over: the client library's own errors (CR_*), and the last words of a server that
/// shuts down or ends an idle or killed session.
bool ends_session(unsigned code) noexcept;
/// Another transaction was faster, or waited for this one: made again, the calls succeed.
bool is_race(const Failure& failure) noexcept;
/// A lock was not free in time.
bool is_lock_wait(const Failure& failure) noexcept;
/// The row that was to be made is there already.
bool is_duplicate(const Failure& failure) noexcept;
/// This server does not accept writes (any more): another one of the URL may.
bool is_other_server(const Failure& failure) noexcept;
/// A table, a function or the database is missing.
bool may_be_another_store(const Failure& failure) noexcept;
/// A trigger of the store refuses it: its message says why.
bool is_refusal(const Failure& failure) noexcept;
/// It can never succeed in this form, whatever the state of the server.
bool is_unstorable(const Failure& failure) noexcept;

}  // namespace idem::mysql
