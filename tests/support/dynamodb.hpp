#pragma once

#include <string>
#include <vector>

#include "support/json.hpp"

/// Servers with DynamoDB's protocol for tests (dynalite): the one that all tests of a run share, or
/// some of a test's own.
namespace idem::test {

/// A server of its own, ended with this object. Fails the process where there is none to be had.
class DynamodbServer {
 public:
  /// `settings` of dynalite, "name=value", separated by spaces. With "path=data" its tables outlive
  /// a crash.
  explicit DynamodbServer(const std::string& settings = {});
  ~DynamodbServer();
  DynamodbServer(const DynamodbServer&) = delete;
  DynamodbServer& operator=(const DynamodbServer&) = delete;

  /// http://HOST:PORT
  std::string endpoint() const { return endpoint_; }
  const std::string& folder() const { return folder_; }

  /// kill -9, and back on the same port.
  void crash();
  void start();
  /// SIGSTOP, SIGCONT.
  void pause();
  void go_on();

 private:
  std::string folder_;
  std::string endpoint_;
};

/// http://HOST:PORT of the server that the run shares; where CTest started none, of one that ends
/// with this process.
std::string shared_dynamodb_endpoint();
/// The name of a table that is not there yet.
std::string new_dynamodb_table();
/// Of that table. The servers take any credentials: this sets some in this process's environment,
/// which the processes that it starts have too, unless there are some.
std::string dynamodb_url(const std::string& endpoint, const std::string& table);

/// One call of the API, "ListTables", for what a test does behind the store's back. Fails the test
/// on an error.
Json ask_dynamodb(const std::string& endpoint, const std::string& operation,
                  const std::string& body);
/// Reads the pages of all tables (100 a page): the tests of one run make more than one page.
bool has_dynamodb_table(const std::string& endpoint, const std::string& table);
/// These attributes of an item, texts, numbers or bytes, as JSON: a key for ask_dynamodb().
std::string dynamodb_text(const Json& item, const std::vector<std::string>& names);
/// All items of a table, as the service writes them: {"p":{"S":"text"},"s":{"B":"AAEC"}}.
std::vector<Json> dynamodb_items(const std::string& endpoint, const std::string& table);

}  // namespace idem::test
