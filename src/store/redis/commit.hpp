#pragma once

#include "core/transitions/snapshot_table.hpp"
#include "store/redis/rows.hpp"

/// One record's write as a call of commit.lua.
namespace idem::redis {

struct Commit {
  const RecordWrite& write;
  std::string_view read_version;  ///< Empty: there was no record.
  const Version& version;         ///< Of the new row.
  AnswerMark kept_mark = 0;       ///< Of the stored answer, for a step that keeps it.
  StoreTime now;                  ///< The step's moment.
  bool check_now = true;
  std::string generation{};  ///< Empty: any.
  bool wants_answer = false;
  bool wants_request = false;
  bool is_copy = false;  ///< Of a record of another store: no attempt begins.
};

/// Whether the record gets another attempt than before.
bool begins_attempt(const RecordWrite& write) noexcept;

std::string to_command(const Commit& commit, const Names& names);

}  // namespace idem::redis
