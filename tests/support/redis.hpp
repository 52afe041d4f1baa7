#pragma once

#include <string>
#include <vector>

/// Real Redis servers for tests: those that all tests of a run share, or some of a test's own.
namespace idem::test {

/// A server of its own, ended with this object. Fails the process where there is none to be had.
class RedisServer {
 public:
  /// `settings`: lines of redis.conf, "name=value", separated by spaces.
  explicit RedisServer(const std::string& settings = {});
  ~RedisServer();
  RedisServer(RedisServer&& other) noexcept;
  RedisServer& operator=(RedisServer&&) = delete;

  /// Follows `master`.
  static RedisServer replica_of(const RedisServer& master);

  std::string address() const { return address_; }
  std::string url() const { return "redis://" + address_; }
  const std::string& folder() const { return folder_; }

  /// kill -9, and back on the same port with its files.
  void crash();
  void start();
  /// SIGSTOP, SIGCONT.
  void pause();
  void go_on();

  /// Of the unix socket that it listens at besides.
  std::string socket() const { return folder_ + "/socket"; }

  /// The output of redis-cli.
  std::string ask(const std::string& command) const;

 private:
  friend class RedisCluster;
  friend class RedisSentinels;
  explicit RedisServer(std::string folder, int);

  std::string folder_;
  std::string address_;
};

/// Three masters without replicas.
class RedisCluster {
 public:
  RedisCluster();
  std::string url() const;
  std::vector<RedisServer>& servers() { return servers_; }

 private:
  std::vector<RedisServer> servers_;
};

/// Three sentinels, who call `master` "idem".
class RedisSentinels {
 public:
  explicit RedisSentinels(const RedisServer& master);
  std::string url() const;
  /// A majority of them knows one, so that they could promote it.
  bool knows_replica() const;
  std::vector<RedisServer>& sentinels() { return sentinels_; }

 private:
  std::vector<RedisServer> sentinels_;
};

/// HOST:PORT of the server that the run shares, of the masters of its cluster with commas between
/// them; where CTest started none, of one that ends with this process.
std::string shared_redis_address();
std::string shared_redis_cluster_addresses();
/// Sets what lies there apart from other tests': to be the `prefix` of a URL.
std::string new_redis_prefix();

/// redis-cli, at a server of that address.
std::string ask_redis(const std::string& address, const std::string& command);

}  // namespace idem::test
