#pragma once

#include <idem/store.hpp>

#include <string>
#include <string_view>

/// The calls of schema/mysql/functions/61_face_steps.sql and 62_face_reserve.sql. All values are
/// numbers and hexadecimal literals, which mean the same in any session.
namespace idem::mysql {

/// `database`: in backticks; empty: the connection's own. Answers whether the attempt is the
/// current one, and has the record's lock.
std::string admit_sql(std::string_view database, const RecordId& id, const AttemptRef& attempt);
std::string reserve_sql(std::string_view database, const Reserve& reserve);
/// A Complete, an Advance or a MarkUnknown; an error unless it is done.
std::string step_sql(std::string_view database, const StoreCall& step);

}  // namespace idem::mysql
