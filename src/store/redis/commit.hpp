#pragma once

#include "store/redis/rows.hpp"
#include "store/snapshot_table.hpp"

/// One record's write as a call of commit.lua.
namespace idem::redis {

struct Commit {
  const RecordWrite& write;
  std::string_view read_version;  ///< Empty: nothing lay there.
  const Version& version;         ///< Of what is to lie there.
  AnswerMark kept_mark = 0;       ///< Of the answer that lies there, should it stay.
  StoreTime now;                  ///< For which the step was made.
  bool check_now = true;
  std::string generation{};  ///< Empty: at will.
  bool wants_answer = false;
  bool wants_request = false;
};

/// Another attempt than the one before.
bool begins_attempt(const RecordWrite& write) noexcept;

std::string to_command(const Commit& commit, const Names& names);

}  // namespace idem::redis
