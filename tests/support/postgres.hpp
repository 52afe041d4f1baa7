#pragma once

#include <cstdint>
#include <string>
#include <string_view>

struct pg_conn;

/// A real PostgreSQL for tests: the one that all tests of a run share, or one of a test's own.
namespace idem::test {

/// A server of its own, ended with this object. Fails the process where there is none to be had.
class PostgresServer {
 public:
  /// `settings`: lines of postgresql.conf, "name=value", separated by spaces.
  explicit PostgresServer(const std::string& settings = {});
  ~PostgresServer();
  /// A standby that follows `primary`.
  static PostgresServer standby_of(const PostgresServer& primary);
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  const std::string& folder() const { return folder_; }
  std::string uri(const std::string& database = "postgres") const;

  /// Through PgBouncer, which is started by that: once.
  std::string pooled_uri(const std::string& mode, int connections);

  /// As a crash ends it: nothing is finished, nothing is said.
  void stop();
  void start();
  /// A standby becomes a primary.
  void promote();

 private:
  struct Started {
    std::string folder;
  };
  explicit PostgresServer(Started started);

  std::string folder_;
};

/// Of the server that the run shares; where CTest started none, of one that ends with this process.
std::string shared_postgres_uri(const std::string& database);
/// The same, through PgBouncer in transaction mode.
std::string pooled_postgres_uri(const std::string& database);

/// A blocking session, for what a test does behind the store's back.
class Psql {
 public:
  explicit Psql(const std::string& uri);
  ~Psql();
  Psql(const Psql&) = delete;
  Psql& operator=(const Psql&) = delete;

  /// Runs statements; what the last one answers first, as text. Fails the test on an error.
  std::string run(const std::string& sql);
  /// The SQLSTATE of an error, or nothing.
  std::string try_run(const std::string& sql);

 private:
  pg_conn* connection_;
};

/// A database of its own on the shared server, dropped with this object.
class TestDatabase {
 public:
  /// `schema`: with Idem's schema in it, if CTest's server has a copy, and without a store. That
  /// spares some 250 ms.
  enum class With : std::uint8_t { nothing, schema };
  explicit TestDatabase(With with = With::nothing);
  ~TestDatabase();
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;
  std::string uri() const { return shared_postgres_uri(name_); }
  std::string pooled_uri() const { return pooled_postgres_uri(name_); }

 private:
  std::string name_;
};

/// A role that may log in, made for one test and dropped with all that it owns in the database.
class TestRole {
 public:
  /// `database`: its URI, as the superuser that made it. `attributes` of CREATE ROLE.
  explicit TestRole(std::string database, const std::string& attributes = {});
  ~TestRole();
  TestRole(const TestRole&) = delete;
  TestRole& operator=(const TestRole&) = delete;

  const std::string& name() const { return name_; }
  /// The database's, as this role.
  std::string uri() const;

 private:
  std::string database_;
  std::string name_;
};

}  // namespace idem::test
