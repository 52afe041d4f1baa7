#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "support/mysql.hpp"
#include "support/postgres.hpp"
#include "support/temp_dir.hpp"

namespace idem::test {

/// The clocks under a store of `idem-crash`, which is given environment(). They start as the
/// machine's, and go on with it from wherever they are moved to.
class MovedClock {
 public:
  MovedClock();
  ~MovedClock();
  MovedClock(const MovedClock&) = delete;
  MovedClock& operator=(const MovedClock&) = delete;

  std::string environment() const { return "IDEM_CLOCK_FILE=" + file_.string(); }
  /// To be called once a gateway has that store open: where it lies in a PostgreSQL or a MySQL, the
  /// clock is the server's, and is moved there.
  void move_also_under(const std::filesystem::path& store);

  /// Time passes: both clocks go on by so much.
  void pass(std::int64_t seconds);
  /// Sets the wall clock, as an operator may.
  void step_wall(std::int64_t seconds);

 private:
  TempDir dir_;
  std::filesystem::path file_;
  std::int64_t* numbers_ = nullptr;
  std::unique_ptr<Psql> server_;
  std::unique_ptr<MysqlSession> mysql_;
};

}  // namespace idem::test
