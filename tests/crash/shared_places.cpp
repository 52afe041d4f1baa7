#include "crash/shared_places.hpp"

#include <chrono>
#include <thread>

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
class Hybrid final : public SharedPlace {
 public:
  std::string url() const override {
    return "hybrid:?truth=" + truth_.uri() + "&fast=" + fast_.url();
  }
  void fail(std::mt19937& random) override {
    switch (random() % 5) {
      case 0:
        truth_.stop();
        return truth_.start();
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
  PostgresServer truth_;
  RedisServer fast_;
};

}  // namespace

std::unique_ptr<SharedPlace> make_shared_place(const std::string& kind) {
  if (kind == "postgres") return std::make_unique<Postgres>();
  if (kind == "redis") return std::make_unique<Redis>();
  if (kind == "redis_cluster") return std::make_unique<Cluster>();
  return std::make_unique<Hybrid>();
}

std::vector<std::string> shared_kinds() { return {"postgres", "redis", "redis_cluster", "hybrid"}; }

}  // namespace idem::test
