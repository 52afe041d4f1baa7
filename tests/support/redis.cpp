#include "support/redis.hpp"

#include "support/script.hpp"
#include "support/unique_name.hpp"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

namespace idem::test {
namespace {

const std::string redis_script = IDEM_SOURCE_DIR "/tests/servers/redis";

std::vector<std::string> folders_of(const std::string& command) {
  std::istringstream words(output_of(redis_script + " " + command));
  std::vector<std::string> folders;
  for (std::string one; words >> one;) folders.push_back(one);
  if (folders.empty()) {
    std::cerr << "no Redis could be started: " << command << '\n';
    std::abort();
  }
  return folders;
}

std::string joined(const std::vector<RedisServer>& servers) {
  std::string all;
  for (const RedisServer& one : servers) all += (all.empty() ? "" : ",") + one.address();
  return all;
}

}  // namespace

RedisServer::RedisServer(std::string folder, int)
    : folder_(std::move(folder)), address_("127.0.0.1:" + first_field_of(folder_ + "/port")) {}

RedisServer::RedisServer(const std::string& settings)
    : RedisServer(folders_of("start " + settings).front(), 0) {}

RedisServer::RedisServer(RedisServer&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), address_(std::move(other.address_)) {}

RedisServer::~RedisServer() {
  if (!folder_.empty()) output_of(redis_script + " stop " + folder_);
}

RedisServer RedisServer::replica_of(const RedisServer& master) {
  return RedisServer(folders_of("replica " + master.folder_).front(), 0);
}

void RedisServer::crash() { output_of(redis_script + " crash " + folder_); }
void RedisServer::start() { output_of(redis_script + " restart " + folder_); }
void RedisServer::pause() { output_of(redis_script + " pause " + folder_); }
void RedisServer::go_on() { output_of(redis_script + " continue " + folder_); }

std::string RedisServer::ask(const std::string& command) const {
  return output_of("redis-cli -s " + socket() + " " + command + " 2>&1");
}

RedisCluster::RedisCluster() {
  for (std::string& folder : folders_of("cluster")) {
    servers_.push_back(RedisServer(std::move(folder), 0));
  }
}

std::string RedisCluster::url() const { return "redis+cluster://" + joined(servers_) + "/"; }

RedisSentinels::RedisSentinels(const RedisServer& master) {
  for (std::string& folder : folders_of("sentinels " + master.folder() + " 3")) {
    sentinels_.push_back(RedisServer(std::move(folder), 0));
  }
}

std::string RedisSentinels::url() const {
  return "redis+sentinel://" + joined(sentinels_) + "/idem";
}

bool RedisSentinels::knows_replica() const {
  std::size_t knowing = 0;
  for (const RedisServer& one : sentinels_) {
    const std::string info = one.ask("info sentinel");
    const bool knows_all = info.find("sentinels=3") != info.npos;
    if (knows_all && info.find("slaves=1") != info.npos) ++knowing;
  }
  return knowing == sentinels_.size();
}

std::string shared_redis_address() {
  static const std::string address = [] {
    std::string found = first_field_of(IDEM_BIN_DIR "/../servers/redis");
    if (!found.empty() && ask_redis(found, "ping") == "PONG") return found;
    static const RedisServer own;
    return own.address();
  }();
  return address;
}

std::string shared_redis_cluster_addresses() {
  static const std::string addresses = [] {
    std::string found = first_field_of(IDEM_BIN_DIR "/../servers/redis-cluster");
    if (!found.empty() && ask_redis(found.substr(0, found.find(',')), "ping") == "PONG") {
      return found;
    }
    static RedisCluster own;
    return joined(own.servers());
  }();
  return addresses;
}

std::string new_redis_prefix() { return unique_name("t"); }

std::string ask_redis(const std::string& address, const std::string& command) {
  const auto colon = address.rfind(':');
  return output_of("redis-cli -h " + address.substr(0, colon) + " -p " + address.substr(colon + 1) +
                   " " + command + " 2>&1");
}

}  // namespace idem::test
