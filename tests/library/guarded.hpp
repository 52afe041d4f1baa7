#pragma once

#include <idem/guard.hpp>
#include <idem/open_store.hpp>
#include <idem/store_wait.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <thread>

#include "support/json.hpp"
#include "support/shared_store.hpp"
#include "support/temp_dir.hpp"

/// A service in this process: a table of payments, and a guard in front of the paying work.
namespace idem::test {

Request payment(std::string_view key, int amount = 5);
std::optional<std::string> field_of(const Response& answer, std::string_view name);
std::string code_of(const Response& answer);
/// `first` once more: status, body and stored fields.
testing::AssertionResult replays(const Response& first, const Response& again);

/// The settings that a service gives its own connection before a store is opened on it.
inline constexpr const char* own_connection_setup =
    "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
    "PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = ON";
/// The store of a service of this kind; "sqlite_own": on its own connection.
std::expected<std::unique_ptr<Store>, std::string> open_as(const std::string& kind,
                                                           const std::string& url);

/// Of "sqlite", "sqlite_own", "postgres" and "mysql", whose transactions hold business rows.
class Guarded : public testing::TestWithParam<std::string> {
 protected:
  Guarded();

  /// For handlers that do nothing but commit().
  static GuardOptions commits_only();
  std::unique_ptr<Store> open();
  Response serve(const Request& request, const TransactionWork& work);
  std::int64_t payments();
  /// One row, then this answer.
  static TransactionWork paying(int amount = 5, int status = 201);
  Record record_of(const RecordId& id);

  TempDir dir_;
  std::unique_ptr<SharedStoreUrl> shared_;
  std::string url_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Guard> guard_;
};

}  // namespace idem::test
