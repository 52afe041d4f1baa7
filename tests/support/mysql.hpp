#pragma once

#include <string>

struct st_mysql;

/// A real MariaDB for tests: the one that all tests of a run share, or one of a test's own.
namespace idem::test {

/// A server of its own, ended with this object. Fails the process where there is none to be had.
class MysqlServer {
 public:
  /// `settings`: lines of my.cnf, "name=value", separated by spaces.
  explicit MysqlServer(const std::string& settings = {});
  ~MysqlServer();
  MysqlServer(const MysqlServer&) = delete;
  MysqlServer& operator=(const MysqlServer&) = delete;

  std::string address() const { return address_; }
  /// Of the database `idem`, which a new server has, empty.
  std::string url() const;
  const std::string& folder() const { return folder_; }

  /// kill -9, and back on the same port with its files; with further settings, if given.
  void crash();
  void start(const std::string& settings = {});
  /// SIGSTOP, SIGCONT.
  void pause();
  void go_on();

 private:
  std::string folder_;
  std::string address_;
};

/// HOST:PORT of the server that the run shares; where CTest started none, of one that ends with
/// this process.
std::string shared_mysql_address();

/// A blocking session as the user root, for what a test does behind the store's back.
class MysqlSession {
 public:
  /// `url`: mysql://root@HOST:PORT/DATABASE; without a database also.
  explicit MysqlSession(const std::string& url);
  ~MysqlSession();
  MysqlSession(const MysqlSession&) = delete;
  MysqlSession& operator=(const MysqlSession&) = delete;

  /// Runs statements; the first value of the last rows that they answer, as text; "" for NULL.
  /// Fails the test on an error.
  std::string run(const std::string& sql);
  /// The number of an error, or 0; fills `first`, as run() answers it.
  unsigned try_run(const std::string& sql, std::string& first);
  unsigned try_run(const std::string& sql);

 private:
  st_mysql* connection_;
};

/// A database of its own on the shared server, dropped with this object.
class TestMysqlDatabase {
 public:
  TestMysqlDatabase();
  ~TestMysqlDatabase();
  TestMysqlDatabase(const TestMysqlDatabase&) = delete;
  TestMysqlDatabase& operator=(const TestMysqlDatabase&) = delete;

  const std::string& name() const { return name_; }
  std::string url() const;

 private:
  std::string name_;
};

}  // namespace idem::test
