#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/mysql.hpp"
#include "support/postgres.hpp"
#include "support/redis.hpp"

/// A store of a test's own, on the servers that the run shares, for several gateways at once.
namespace idem::test {

class SharedStoreUrl {
 public:
  /// "postgres", "mysql", "redis", "redis_cluster", "dynamodb", "hybrid" (of PostgreSQL) or
  /// "hybrid_mysql".
  explicit SharedStoreUrl(const std::string& kind);
  const std::string& url() const { return url_; }

  /// Of its PostgreSQL; empty where it has none.
  std::string database() const { return database_ ? database_->uri() : std::string{}; }
  /// The URL of its MySQL database; empty where it has none.
  std::string mysql() const { return mysql_ ? mysql_->url() : std::string{}; }

  /// All that lies there, for a test to search in: what is not printable is a dot.
  std::string content() const;
  /// Makes every record unreadable, behind the store's back.
  void spoil_records() const;

 private:
  /// The answers of a script at each Redis there is, given the prefix.
  std::string at_each_redis(const std::string& script) const;

  std::string content_of_redis() const;
  std::string content_of_postgres() const;
  std::string content_of_mysql() const;
  std::string content_of_dynamodb() const;

  std::unique_ptr<TestDatabase> database_;
  std::unique_ptr<TestMysqlDatabase> mysql_;
  std::string table_;  ///< Of DynamoDB.
  std::vector<std::string> redis_;
  std::string prefix_ = new_redis_prefix();
  std::string url_;
};

std::vector<std::string> shared_store_kinds();

}  // namespace idem::test
