#include "support/shared_store.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace idem::test {
namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string one; std::getline(in, one, ',');) parts.push_back(one);
  return parts;
}

}  // namespace

SharedStoreUrl::SharedStoreUrl(const std::string& kind) {
  const std::string query = "/?prefix=" + prefix_;
  if (kind == "postgres" || kind == "hybrid") database_ = std::make_unique<TestDatabase>();
  if (kind == "redis" || kind == "hybrid") redis_ = {shared_redis_address()};
  if (kind == "redis_cluster") redis_ = split(shared_redis_cluster_addresses());
  if (kind == "postgres") url_ = database_->uri();
  if (kind == "redis") url_ = "redis://" + redis_.front() + query;
  if (kind == "redis_cluster") url_ = "redis+cluster://" + shared_redis_cluster_addresses() + query;
  if (kind == "hybrid") {
    url_ = "hybrid:?truth=" + database_->uri() + "&fast=redis://" + redis_.front() + query;
  }
}

std::string SharedStoreUrl::content() const {
  std::string all = at_each_redis(R"(
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
  if (!database_) return all;
  Psql session(database_->uri());
  session.run("SET bytea_output = escape");
  const std::string tables = session.run(R"(
    SELECT string_agg(format('SELECT t::text AS line FROM %s t', oid::regclass), ' UNION ALL ')
      FROM pg_class WHERE relnamespace = 'idem'::regnamespace AND relkind = 'r')");
  return all + session.run("SELECT string_agg(line, ' ') FROM (" + tables + ") AS lines");
}

void SharedStoreUrl::spoil_records() const {
  at_each_redis(R"(
    for _, key in ipairs(redis.call('KEYS', '*' .. ARGV[1] .. ':*')) do
      if redis.call('TYPE', key).ok == 'string' then redis.call('SET', key, 'x') end
    end
    return 'done')");
  if (database_) Psql(database_->uri()).run("UPDATE idem.slots SET response_head = 'x'");
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
  return {"postgres", "redis", "redis_cluster", "hybrid"};
}

}  // namespace idem::test
