#include "support/mysql.hpp"

#include "support/script.hpp"
#include "support/time_spent.hpp"
#include "support/unique_name.hpp"

#include <gtest/gtest.h>
#include <mysql.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace idem::test {
namespace {

const std::string mysql_script = IDEM_SOURCE_DIR "/tests/servers/mysql";

/// Of the server that CTest started; empty where it started none, or where it is gone.
const std::string& ctest_folder() {
  static const std::string folder = [] {
    std::string found = first_field_of(IDEM_BIN_DIR "/../servers/mysql");
    return std::filesystem::exists(found + "/socket") ? found : std::string();
  }();
  return folder;
}

std::string url_of(const std::string& address, const std::string& database) {
  return "mysql://root@" + address + "/" + database;
}

}  // namespace

MysqlServer::MysqlServer(const std::string& settings)
    : folder_(output_of("IDEM_MYSQL_TEMPLATE=" + ctest_folder() + "/template " + mysql_script +
                        " start " + settings)),
      address_("127.0.0.1:" + first_field_of(folder_ + "/port")) {
  if (folder_.empty()) {
    std::cerr << "no MariaDB could be started\n";
    std::abort();
  }
  // A server that takes no writes has none.
  (void)MysqlSession(url_of(address_, "")).try_run("CREATE DATABASE idem");
}

MysqlServer::~MysqlServer() { output_of(mysql_script + " stop " + folder_); }

std::string MysqlServer::url() const { return url_of(address_, "idem"); }

void MysqlServer::crash() { output_of(mysql_script + " crash " + folder_); }
void MysqlServer::start(const std::string& settings) {
  output_of(mysql_script + " restart " + folder_ + " " + settings);
}
void MysqlServer::pause() { output_of(mysql_script + " pause " + folder_); }
void MysqlServer::go_on() { output_of(mysql_script + " continue " + folder_); }

std::string shared_mysql_address() {
  static const std::string address = [] {
    if (!ctest_folder().empty()) return "127.0.0.1:" + first_field_of(ctest_folder() + "/port");
    static const MysqlServer own;
    return own.address();
  }();
  return address;
}

MysqlSession::MysqlSession(const std::string& url) : connection_(mysql_init(nullptr)) {
  const std::string scheme = "mysql://root@";
  EXPECT_TRUE(url.starts_with(scheme)) << url;
  const std::string place = url.substr(scheme.size(), url.find('?') - scheme.size());
  const std::size_t colon = place.find(':');
  const std::size_t slash = place.find('/');
  const std::string host = place.substr(0, colon);
  const auto port = static_cast<unsigned>(std::stoul(place.substr(colon + 1)));
  const std::string database = place.substr(slash + 1);
  EXPECT_NE(mysql_real_connect(connection_, host.c_str(), "root", "",
                               database.empty() ? nullptr : database.c_str(), port, nullptr,
                               CLIENT_MULTI_STATEMENTS),
            nullptr)
      << mysql_error(connection_);
}

MysqlSession::~MysqlSession() { mysql_close(connection_); }

unsigned MysqlSession::try_run(const std::string& sql, std::string& first) {
  if (mysql_real_query(connection_, sql.data(), sql.size()) != 0) return mysql_errno(connection_);
  for (;;) {
    if (MYSQL_RES* const rows = mysql_store_result(connection_)) {
      MYSQL_ROW const row = mysql_fetch_row(rows);
      const bool has_value = row != nullptr && row[0] != nullptr;
      first = has_value ? std::string(row[0], mysql_fetch_lengths(rows)[0]) : std::string();
      mysql_free_result(rows);
    }
    const int next = mysql_next_result(connection_);
    if (next < 0) return 0;
    if (next > 0) return mysql_errno(connection_);
  }
}

std::string MysqlSession::run(const std::string& sql) {
  std::string first;
  EXPECT_EQ(try_run(sql, first), 0U) << sql << ": " << mysql_error(connection_);
  return first;
}

unsigned MysqlSession::try_run(const std::string& sql) {
  std::string ignored;
  return try_run(sql, ignored);
}

TestMysqlDatabase::TestMysqlDatabase() {
  const TimeSpent spent("databases");
  name_ = unique_name("t");
  MysqlSession(url_of(shared_mysql_address(), "")).run("CREATE DATABASE " + name_);
}

TestMysqlDatabase::~TestMysqlDatabase() {
  const TimeSpent spent("databases");
  MysqlSession(url_of(shared_mysql_address(), "")).run("DROP DATABASE IF EXISTS " + name_);
}

std::string TestMysqlDatabase::url() const { return url_of(shared_mysql_address(), name_); }

}  // namespace idem::test
