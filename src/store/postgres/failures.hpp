#pragma once

#include <idem/record.hpp>

#include <string_view>

/// What a failure of a statement means for the calls that it carried.
namespace idem::postgres {

struct Failure;

/// Lost a race against another transaction, and was rolled back: worth another try.
bool is_race(const Failure& failure);
/// Ended in favour of another transaction, perhaps by a service's own statements: the same work may
/// succeed when that one is over.
bool is_contention(std::string_view sqlstate);
/// The server accepts no writes, or none now: another one of the URI may.
bool is_other_server(const Failure& failure);
/// The schema, or something in it, is gone, or has another generation: perhaps another store was
/// made in its place. The connection's store has to be compared before the next call.
bool may_be_another_store(const Failure& failure);
/// The record of the call, or a line of its evidence, is damaged.
bool is_damage(const Failure& failure);
/// The schema refused the call for another reason than its values.
bool is_refusal(const Failure& failure);
/// The server cannot hold the call's values: a repeat will fail in the same way.
bool is_unstorable(const Failure& failure);
/// The bytes of one record may be the cause: the other calls of the statement succeed without it.
bool may_be_of_one_call(const Failure& failure);

}  // namespace idem::postgres
