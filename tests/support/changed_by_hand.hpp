#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>
#include <string_view>
#include <vector>

namespace idem::test {

/// Runs statements in a store's file, and then makes the triggers anew that they dropped: a start
/// refuses a file whose definitions changed. Returns what SQLite says of the statements.
inline int change_by_hand(sqlite3* db, const std::string& statements, char** message = nullptr) {
  std::vector<std::string> triggers;
  const auto keep = [](void* kept, int, char** values, char**) {
    static_cast<std::vector<std::string>*>(kept)->emplace_back(values[0]);
    return 0;
  };
  sqlite3_exec(db, "SELECT sql FROM sqlite_schema WHERE type = 'trigger'", keep, &triggers,
               nullptr);
  const int code = sqlite3_exec(db, statements.c_str(), nullptr, nullptr, message);
  for (const std::string& trigger : triggers) {
    const bool is_there = sqlite3_exec(db, trigger.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK;
    EXPECT_TRUE(!is_there || std::string_view(sqlite3_errmsg(db)).ends_with("already exists"));
  }
  return code;
}

}  // namespace idem::test
