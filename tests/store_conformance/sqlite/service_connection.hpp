#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

namespace idem::test {

/// As open_sqlite_on() wants a service's own connection.
inline sqlite3* service_connection(const std::string& path) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db,
                         "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA "
                         "synchronous=FULL; PRAGMA wal_autocheckpoint=0; PRAGMA foreign_keys=ON",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  return db;
}

}  // namespace idem::test
