#pragma once

#include <sqlite3.h>

#include <string>
#include <vector>

namespace idem::test {

/// Runs statements in a store's file, and then makes the triggers anew that they dropped: a start
/// refuses a file whose definitions changed. SQLite's code.
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
    sqlite3_exec(db, trigger.c_str(), nullptr, nullptr, nullptr);  // One that is there stays.
  }
  return code;
}

}  // namespace idem::test
