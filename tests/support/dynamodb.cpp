#include "support/dynamodb.hpp"

#include "support/script.hpp"
#include "support/unique_name.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace idem::test {
namespace {

const std::string dynamodb_script = IDEM_SOURCE_DIR "/tests/servers/dynamodb";

std::string endpoint_of(const std::string& folder) {
  std::string port;
  std::ifstream(folder + "/port") >> port;
  return "http://127.0.0.1:" + port;
}

}  // namespace

DynamodbServer::DynamodbServer(const std::string& settings)
    : folder_(output_of(dynamodb_script + " start " + settings)), endpoint_(endpoint_of(folder_)) {
  if (folder_.empty()) {
    std::cerr << "no dynalite could be started: scripts/need-node-clients\n";
    std::abort();
  }
}

DynamodbServer::~DynamodbServer() { output_of(dynamodb_script + " stop " + folder_); }

void DynamodbServer::crash() { output_of(dynamodb_script + " crash " + folder_); }
void DynamodbServer::start() { output_of(dynamodb_script + " restart " + folder_); }
void DynamodbServer::pause() { output_of(dynamodb_script + " pause " + folder_); }
void DynamodbServer::go_on() { output_of(dynamodb_script + " continue " + folder_); }

std::string shared_dynamodb_endpoint() {
  static const std::string endpoint = [] {
    std::string folder;
    std::ifstream(IDEM_BIN_DIR "/../servers/dynamodb") >> folder;
    if (!folder.empty() && std::filesystem::exists(folder + "/port")) return endpoint_of(folder);
    static const DynamodbServer own;
    return own.endpoint();
  }();
  return endpoint;
}

std::string new_dynamodb_table() { return unique_name("t"); }

std::string dynamodb_url(const std::string& endpoint, const std::string& table) {
  static const bool once = [] {
    ::setenv("AWS_ACCESS_KEY_ID", "test", 0);
    ::setenv("AWS_SECRET_ACCESS_KEY", "test", 0);
    return true;
  }();
  (void)once;
  return "dynamodb://" + table + "?region=us-east-1&endpoint=" + endpoint;
}

Json ask_dynamodb(const std::string& endpoint, const std::string& operation,
                  const std::string& body) {
  // No value of a test has an apostrophe.
  const std::string reply =
      output_of("curl -sS --fail-with-body -m 30 -H 'X-Amz-Target: DynamoDB_20120810." + operation +
                "' -H 'Content-Type: application/x-amz-json-1.0' -H 'X-Amz-Date: 20260101T000000Z'"
                " -H 'Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/"
                "aws4_request, SignedHeaders=host, Signature=00' -d '" +
                body + "' " + endpoint + "/");
  EXPECT_FALSE(reply.empty()) << operation << " " << body;
  return parse_json(reply).value_or(Json{});
}

bool has_dynamodb_table(const std::string& endpoint, const std::string& table) {
  for (std::string from;;) {
    const Json page = ask_dynamodb(endpoint, "ListTables", "{" + from + "}");
    for (const Json& name : page["TableNames"].items) {
      if (name.string == table) return true;
    }
    if (!page.has("LastEvaluatedTableName")) return false;
    from = R"("ExclusiveStartTableName":")" + page["LastEvaluatedTableName"].string + '"';
  }
}

std::string dynamodb_text(const Json& item, const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) {
    const auto& [type, value] = item[name].members.at(0);
    text += text.empty() ? "{" : ",";
    text += '"' + name + R"(":{")" + type + R"(":")" + value.string + "\"}";
  }
  return text + "}";
}

std::vector<Json> dynamodb_items(const std::string& endpoint, const std::string& table) {
  std::vector<Json> items;
  for (std::string from;;) {
    const Json page = ask_dynamodb(
        endpoint, "Scan", R"({"ConsistentRead":true,"TableName":")" + table + '"' + from + "}");
    const auto& more = page["Items"].items;
    items.insert(items.end(), more.begin(), more.end());
    if (!page.has("LastEvaluatedKey")) return items;
    std::vector<std::string> names;
    for (const auto& [name, value] : page["LastEvaluatedKey"].members) names.push_back(name);
    from = R"(,"ExclusiveStartKey":)" + dynamodb_text(page["LastEvaluatedKey"], names);
  }
}

}  // namespace idem::test
