#include "support/shared_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "support/dynamodb.hpp"

namespace idem::test {
namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string one; std::getline(in, one, ',');) parts.push_back(one);
  return parts;
}

/// What is not printable is a dot.
std::string printable(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, '.');
  return text;
}

/// All texts, numbers and bytes of an attribute of DynamoDB.
void add_attribute(const Json& value, bool is_bytes, std::string& all) {
  all += (is_bytes ? decode_base64(value.string) : value.string) + " ";
  for (const auto& item : value.items) add_attribute(item, is_bytes, all);
  for (const auto& [type, member] : value.members) add_attribute(member, type[0] == 'B', all);
}

}  // namespace

SharedStoreUrl::SharedStoreUrl(const std::string& kind) {
  const std::string query = "/?prefix=" + prefix_;
  if (kind == "redis_cluster") {
    redis_ = split(shared_redis_cluster_addresses());
    url_ = "redis+cluster://" + shared_redis_cluster_addresses() + query;
    return;
  }
  const bool is_hybrid = kind.starts_with("hybrid");
  if (kind == "redis" || is_hybrid) {
    redis_ = {shared_redis_address()};
    url_ = "redis://" + redis_.front() + query;
  }
  const std::string fast = url_;
  if (kind == "postgres" || kind == "hybrid") {
    database_ = std::make_unique<TestDatabase>(TestDatabase::With::schema);
    url_ = database_->uri();
  }
  if (kind == "mysql" || kind == "hybrid_mysql") {
    mysql_ = std::make_unique<TestMysqlDatabase>();
    url_ = mysql_->url();
  }
  if (kind == "dynamodb") {
    table_ = new_dynamodb_table();
    url_ = dynamodb_url(shared_dynamodb_endpoint(), table_);
  }
  if (is_hybrid) url_ = "hybrid:?truth=" + url_ + "&fast=" + fast;
}

std::string SharedStoreUrl::content() const {
  std::string all;
  if (!redis_.empty()) all += content_of_redis();
  if (database_) all += content_of_postgres();
  if (mysql_) all += content_of_mysql();
  if (!table_.empty()) all += content_of_dynamodb();
  return all;
}

std::string SharedStoreUrl::content_of_redis() const {
  return at_each_redis(R"(
    local all = {}
    for _, key in ipairs(redis.call('KEYS', '*' .. ARGV[1] .. ':*')) do
      local kind, value = redis.call('TYPE', key).ok, {}
      if kind == 'string' then value = {redis.call('GET', key)} end
      if kind == 'hash' then value = redis.call('HGETALL', key) end
      if kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1) end
      if kind == 'list' then value = redis.call('LRANGE', key, 0, -1) end
      if kind == 'set' then value = redis.call('SMEMBERS', key) end
      if #value == 0 then return redis.error_reply('what is ' .. kind .. '?') end
      all[#all + 1] = key .. ' ' .. table.concat(value, ' ')
    end
    return (table.concat(all, ' '):gsub('[^ -~]', '.')))");
}

std::string SharedStoreUrl::content_of_postgres() const {
  Psql session(database_->uri());
  session.run("SET bytea_output = escape");
  const std::string tables = session.run(R"(
    SELECT string_agg(format('SELECT t::text AS line FROM %s t', oid::regclass), ' UNION ALL ')
      FROM pg_class WHERE relnamespace = 'idem'::regnamespace AND relkind = 'r')");
  return session.run("SELECT string_agg(line, ' ') FROM (" + tables + ") AS lines");
}

std::string SharedStoreUrl::content_of_mysql() const {
  MysqlSession session(mysql_->url());
  session.run("SET SESSION group_concat_max_len = 1000000000");
  // One SELECT for all tables: each row as one text.
  const std::string tables = session.run(
      "SELECT GROUP_CONCAT(line SEPARATOR ' UNION ALL ') FROM"
      " (SELECT CONCAT('SELECT CONCAT_WS(\\' \\', ', GROUP_CONCAT(CONCAT('`', column_name, '`')),"
      " ') AS line FROM `', table_name, '`') AS line"
      " FROM information_schema.columns WHERE table_schema = DATABASE() GROUP BY table_name) AS t");
  return printable(
      session.run("SELECT GROUP_CONCAT(line SEPARATOR ' ') FROM (" + tables + ") AS t"));
}

std::string SharedStoreUrl::content_of_dynamodb() const {
  std::string all;
  for (const auto& item : dynamodb_items(shared_dynamodb_endpoint(), table_)) {
    for (const auto& [name, value] : item.members) add_attribute(value, false, all);
  }
  return printable(std::move(all));
}

void SharedStoreUrl::spoil_records() const {
  if (database_) Psql(database_->uri()).run("UPDATE idem.slots SET response_head = 'x'");
  if (mysql_) MysqlSession(mysql_->url()).run("UPDATE idem_slots SET answer_head = 'x'");
  if (!table_.empty()) {
    for (const auto& item : dynamodb_items(shared_dynamodb_endpoint(), table_)) {
      if (!item.has("r")) continue;  // It is no record.
      ask_dynamodb(shared_dynamodb_endpoint(), "UpdateItem",
                   R"({"TableName":")" + table_ + R"(","Key":)" + dynamodb_text(item, {"p", "s"}) +
                       R"(,"UpdateExpression":"SET r = :x",)"
                       R"("ExpressionAttributeValues":{":x":{"B":"AA=="}}})");
    }
  }
  at_each_redis(R"(
    for _, key in ipairs(redis.call('KEYS', '*' .. ARGV[1] .. ':*')) do
      if redis.call('TYPE', key).ok == 'string' then redis.call('SET', key, 'x') end
    end
    return 'done')");
}

std::string SharedStoreUrl::at_each_redis(const std::string& script) const {
  std::string all;
  for (const auto& address : redis_) {
    const auto reply = ask_redis(address, "--raw eval \"" + script + "\" 0 " + prefix_);
    EXPECT_EQ(reply.find("ERR"), reply.npos) << reply;
    all += reply + "\n";
  }
  return all;
}

std::vector<std::string> shared_store_kinds() {
  return {"postgres", "mysql", "redis", "redis_cluster", "dynamodb", "hybrid", "hybrid_mysql"};
}

}  // namespace idem::test
