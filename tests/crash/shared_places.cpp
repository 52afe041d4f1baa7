#include "crash/shared_places.hpp"

#include <chrono>
#include <map>
#include <thread>

#include "support/dynamodb.hpp"
#include "support/mysql.hpp"
#include "support/postgres.hpp"
#include "support/redis.hpp"

namespace idem::test {
namespace {

class Postgres final : public SharedPlace {
 public:
  std::string url() const override { return server_.uri(); }
  void fail(std::mt19937&) override {
    server_.stop();
    server_.start();
  }

 private:
  PostgresServer server_;
};

class Mysql final : public SharedPlace {
 public:
  std::string url() const override { return server_.url(); }
  void fail(std::mt19937&) override {
    server_.crash();
    server_.start();
  }

 private:
  MysqlServer server_;
};

/// Its tables outlive a crash; it is also held up, as a slow network does it.
class Dynamodb final : public SharedPlace {
 public:
  std::string url() const override { return dynamodb_url(server_.endpoint(), "idem"); }
  void fail(std::mt19937& random) override {
    if (random() % 2 == 0) {
      server_.crash();
      return server_.start();
    }
    server_.pause();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    server_.go_on();
  }

 private:
  DynamodbServer server_{"path=data"};
};

class Redis final : public SharedPlace {
 public:
  std::string url() const override { return server_.url(); }
  void fail(std::mt19937&) override {
    server_.crash();
    server_.start();
  }

 private:
  RedisServer server_;
};

class Cluster final : public SharedPlace {
 public:
  std::string url() const override { return cluster_.url(); }
  void fail(std::mt19937& random) override {
    RedisServer& master = cluster_.servers()[random() % cluster_.servers().size()];
    master.crash();
    master.start();
  }

 private:
  mutable RedisCluster cluster_;
};

/// Fails in one way after the other: the truth, and all that a cache may do.
template <class Truth>
class Hybrid final : public SharedPlace {
 public:
  std::string url() const override {
    return "hybrid:?truth=" + truth_.url() + "&fast=" + fast_.url();
  }
  void fail(std::mt19937& random) override {
    switch (random() % 5) {
      case 0:
        return truth_.fail(random);
      case 1:
        fast_.crash();
        return fast_.start();
      case 2:
        fast_.ask("flushall");
        return;
      case 3:
        fast_.ask("config set maxmemory-policy allkeys-random");
        fast_.ask("config set maxmemory 1mb");
        fast_.ask("config set maxmemory 0");
        return;
      default:
        fast_.pause();
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        fast_.go_on();
    }
  }

 private:
  Truth truth_;
  RedisServer fast_;
};

template <class Place>
std::unique_ptr<SharedPlace> make() {
  return std::make_unique<Place>();
}

}  // namespace

std::unique_ptr<SharedPlace> make_shared_place(const std::string& kind) {
  static const std::map<std::string, std::unique_ptr<SharedPlace> (*)()> places{
      {"postgres", make<Postgres>},
      {"mysql", make<Mysql>},
      {"redis", make<Redis>},
      {"redis_cluster", make<Cluster>},
      {"dynamodb", make<Dynamodb>},
      {"hybrid", make<Hybrid<Postgres>>},
      {"hybrid_mysql", make<Hybrid<Mysql>>},
  };
  return places.at(kind)();
}

}  // namespace idem::test
