#pragma once

#include <atomic>
#include <set>
#include <string>
#include <thread>

/// A sqlite3_vfs that passes everything on, fails the calls that a test names, and notes the
/// writers.
namespace idem::test {

struct FailingVfs {
  /// The SQLite code with which each such operation on the write-ahead log fails; 0: none.
  std::atomic<int> log_write{0};
  std::atomic<int> log_sync{0};

  /// The threads that wrote to the database file itself, which only a checkpoint does.
  std::set<std::thread::id> checkpointers();
  void forget_checkpointers();
};

/// Registered under "idem-failing" at the first call; one for the whole process.
FailingVfs& failing_vfs();

inline constexpr const char* failing_vfs_name = "idem-failing";

}  // namespace idem::test
