#include "support/postgres.hpp"

#include "support/script.hpp"
#include "support/time_spent.hpp"
#include "support/unique_name.hpp"

#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

namespace idem::test {
namespace {

const std::string postgres_script = IDEM_SOURCE_DIR "/tests/servers/postgres";

std::string uri_of(const std::string& folder, const std::string& database) {
  return "postgres:///" + database + "?host=" + folder + "&user=postgres";
}

}  // namespace

PostgresServer::PostgresServer(const std::string& settings)
    : PostgresServer(Started{output_of(postgres_script + " start " + settings)}) {}

PostgresServer PostgresServer::standby_of(const PostgresServer& primary) {
  return PostgresServer(Started{output_of(postgres_script + " standby " + primary.folder())});
}

PostgresServer::PostgresServer(Started started) : folder_(std::move(started.folder)) {
  if (folder_.empty()) {
    std::cerr << "no PostgreSQL could be started\n";
    std::abort();
  }
}

PostgresServer::~PostgresServer() { output_of(postgres_script + " stop " + folder_); }

void PostgresServer::stop() { output_of(postgres_script + " crash " + folder_); }
void PostgresServer::promote() { output_of(postgres_script + " promote " + folder_); }
void PostgresServer::start() { output_of(postgres_script + " restart " + folder_); }

std::string PostgresServer::uri(const std::string& database) const {
  return uri_of(folder_, database);
}

std::string PostgresServer::pooled_uri(const std::string& mode, int connections) {
  output_of(postgres_script + " pool " + folder_ + " " + mode + " " + std::to_string(connections));
  return uri_of(folder_ + "/pool", "postgres") + "&port=6432";
}

namespace {

const std::string& shared_folder() {
  static const std::string folder = [] {
    std::string found;
    std::ifstream(IDEM_BIN_DIR "/../servers/postgres") >> found;
    if (!found.empty() && ::access((found + "/data/postmaster.pid").c_str(), F_OK) == 0) {
      return found;
    }
    static const PostgresServer own;
    output_of(postgres_script + " pool " + own.folder());
    return own.folder();
  }();
  return folder;
}

}  // namespace

std::string shared_postgres_uri(const std::string& database) {
  return uri_of(shared_folder(), database);
}

std::string pooled_postgres_uri(const std::string& database) {
  return uri_of(shared_folder() + "/pool", database) + "&port=6432";
}

Psql::Psql(const std::string& uri) : connection_(PQconnectdb(uri.c_str())) {
  EXPECT_EQ(PQstatus(connection_), CONNECTION_OK) << PQerrorMessage(connection_);
  PQsetNoticeReceiver(connection_, [](void*, const PGresult*) {}, nullptr);
}

Psql::~Psql() { PQfinish(connection_); }

std::string Psql::run(const std::string& sql) {
  PGresult* const result = PQexec(connection_, sql.c_str());
  const auto status = PQresultStatus(result);
  EXPECT_TRUE(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
      << sql << ": " << PQerrorMessage(connection_);
  std::string first = PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "";
  PQclear(result);
  return first;
}

std::string Psql::try_run(const std::string& sql) {
  PGresult* const result = PQexec(connection_, sql.c_str());
  const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  std::string sqlstate = state != nullptr ? state : "";
  PQclear(result);
  return sqlstate;
}

TestDatabase::TestDatabase(With with) {
  const TimeSpent spent("databases");
  name_ = unique_name("t");
  Psql server(shared_postgres_uri("postgres"));
  const bool copies =
      with == With::schema &&
      server.run("SELECT count(*) FROM pg_database WHERE datname = 'idem_template'") == "1";
  server.run("CREATE DATABASE " + name_ + (copies ? " TEMPLATE idem_template" : ""));
}

TestDatabase::~TestDatabase() {
  const TimeSpent spent("databases");
  Psql(shared_postgres_uri("postgres")).run("DROP DATABASE IF EXISTS " + name_ + " WITH (FORCE)");
}

TestRole::TestRole(std::string database, const std::string& attributes)
    : database_(std::move(database)) {
  name_ = unique_name("service");
  Psql(database_).run("CREATE ROLE " + name_ + " LOGIN " + attributes);
}

TestRole::~TestRole() {
  Psql superuser(database_);
  // A session that was closed a moment ago may still be dropping its temporary objects.
  superuser.run("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '" +
                name_ + "'");
  superuser.run("DROP OWNED BY " + name_ + "; DROP ROLE " + name_);
}

std::string TestRole::uri() const {
  const std::string superuser = "user=postgres";
  std::string uri = database_;
  return uri.replace(uri.find(superuser), superuser.size(), "user=" + name_);
}

}  // namespace idem::test
