#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "crash/judge.hpp"
#include "support/back_off.hpp"
#include "support/cutting_proxy.hpp"
#include "support/dynamodb.hpp"
#include "support/live.hpp"
#include "support/mysql.hpp"
#include "support/postgres.hpp"
#include "support/power_loss.hpp"
#include "support/redis.hpp"

/// kill -9 of the process that makes a store: the next one goes on where it stopped. Of a store on
/// a server it dies before each message to that server in turn, of one in files behind each change
/// of the disk. IDEM_FIRST_STARTS: how many of these moments, evenly spread; 1000000: all.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

/// DynamoDB's nodes wait two minutes for one that ended in the middle of a change.
constexpr std::chrono::minutes long_wait{4};

/// A store that is not there yet.
class NewStore {
 public:
  virtual ~NewStore() = default;
  /// Of those who find or make it undisturbed.
  virtual std::string url() const = 0;
  /// Of the process that is killed, and what its environment needs. It ends at this moment; it has
  /// to be killed once `has_come()`.
  virtual std::string killed_url(int moment) = 0;
  virtual std::vector<std::string> environment() const { return {}; }
  virtual bool has_come() const = 0;
  /// So many moments there were, if it was not killed.
  virtual int moments() const = 0;
};

/// Behind one or two proxies, which hold all messages from one on.
class OnServers final : public NewStore {
 public:
  explicit OnServers(const std::string& kind) : kind_(kind) {
    if (kind == "postgres" || kind == "hybrid") database_ = std::make_unique<TestDatabase>();
    if (kind == "mysql") mysql_ = std::make_unique<TestMysqlDatabase>();
  }
  std::string url() const override {
    if (kind_ == "postgres") return database_->uri();
    if (kind_ == "mysql") return mysql_->url();
    if (kind_ == "redis") return redis_at(shared_redis_address());
    if (kind_ == "dynamodb") return dynamodb_url(shared_dynamodb_endpoint(), table_);
    return hybrid_of(database_->uri(), redis_at(shared_redis_address()));
  }
  std::string killed_url(int moment) override {
    gate_ = std::make_shared<MessageGate>(moment);
    if (kind_ == "postgres") return postgres_by_proxy();
    if (kind_ == "mysql") {
      std::string url = mysql_->url();
      const std::string address = shared_mysql_address();
      return url.replace(url.find(address), address.size(), proxy_to(address));
    }
    if (kind_ == "redis") return redis_at(proxy_to(shared_redis_address()));
    if (kind_ == "dynamodb") {
      const std::string endpoint = shared_dynamodb_endpoint();
      return dynamodb_url("http://" + proxy_to(endpoint.substr(endpoint.rfind('/') + 1)), table_);
    }
    return hybrid_of(postgres_by_proxy(), redis_at(proxy_to(shared_redis_address())));
  }
  bool has_come() const override { return gate_->is_closed(); }
  int moments() const override { return gate_->came(); }

 private:
  std::string redis_at(const std::string& address) const {
    return "redis://" + address + "/?prefix=" + prefix_;
  }
  static std::string hybrid_of(const std::string& truth, const std::string& fast) {
    return "hybrid:?truth=" + truth + "&fast=" + fast;
  }
  std::string proxy_to(const std::string& target) {
    proxies_.push_back(std::make_unique<CuttingProxy>(target));
    proxies_.back()->hold_by(gate_);
    return fmt::format("127.0.0.1:{}", proxies_.back()->port());
  }
  std::string postgres_by_proxy() {
    const std::string uri = database_->uri();
    const auto host = uri.find("host=") + 5;
    const std::string folder = uri.substr(host, uri.find('&', host) - host);
    const auto name = uri.find("///") + 3;
    return fmt::format("postgres://postgres@{}/{}?sslmode=disable",
                       proxy_to(folder + "/.s.PGSQL.5432"), uri.substr(name, uri.find('?') - name));
  }

  std::string kind_;
  std::unique_ptr<TestDatabase> database_;
  std::unique_ptr<TestMysqlDatabase> mysql_;
  std::string prefix_ = new_redis_prefix();
  std::string table_ = new_dynamodb_table();
  std::shared_ptr<MessageGate> gate_;
  std::vector<std::unique_ptr<CuttingProxy>> proxies_;
};

/// The library that writes down what changes on the disk kills the process.
class InFiles final : public NewStore {
 public:
  explicit InFiles(const std::string& kind) : kind_(kind) { fs::create_directory(root_); }
  std::string url() const override { return kind_ + ":" + (root_ / "store").string(); }
  std::string killed_url(int moment) override {
    moment_ = moment;
    return url();
  }
  std::vector<std::string> environment() const override {
    return {"LD_PRELOAD=" IDEM_BIN_DIR "/libidem_disk_trace.so", "IDEM_DISK_ROOT=" + root_.string(),
            "IDEM_DISK_TRACE=" + trace_.string(), fmt::format("IDEM_DISK_KILLS_AT={}", moment_)};
  }
  bool has_come() const override { return false; }
  int moments() const override { return static_cast<int>(PowerLoss(trace_.string(), "").steps()); }

 private:
  std::string kind_;
  TempDir dir_;
  fs::path root_ = dir_.path() / "root";
  fs::path trace_ = dir_.path() / "trace";
  int moment_ = 0;
};

std::unique_ptr<NewStore> new_store(const std::string& kind) {
  if (kind == "sqlite" || kind == "embedded") return std::make_unique<InFiles>(kind);
  return std::make_unique<OnServers>(kind);
}

/// `wanted` of the moments 1 to `all`, from a random one of the first on.
std::vector<int> spread(int all, int wanted, unsigned seed) {
  std::vector<int> moments;
  const double step = std::max(1.0, static_cast<double>(all) / wanted);
  std::mt19937 random(seed);
  const double first = std::uniform_real_distribution<double>(0, step)(random);
  for (double at = first; at < all; at += step) moments.push_back(1 + static_cast<int>(at));
  return moments;
}

class MakingOfStore : public testing::TestWithParam<std::string> {
 protected:
  /// What makes the store at a URL.
  using Arguments = std::function<std::vector<std::string>(const std::string& url)>;

  void SetUp() override { IDEM_NEED_PROGRAM("idem"); }

  std::vector<std::string> gateway_at(const std::string& url) const {
    return {"gateway",
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
            "--upstream",
            "http://" + provider_.address(),
            "--store",
            url,
            "--scope",
            "header:X-Tenant-Id",
            "--trust-scope-header"};
  }

  /// Runs it until its last moment, or until it says `over` or ends. Returns all that it said.
  static std::string run_until(NewStore& store, int moment, const Arguments& arguments,
                               std::string_view over) {
    Process process({.program = built_program("idem"),
                     .arguments = arguments(store.killed_url(moment)),
                     .environment = store.environment()});
    while (!store.has_come() && !process.ended() &&
           process.output().find(over) == std::string::npos) {
      back_off();
    }
    process.signal(SIGKILL);
    process.wait();
    return process.output();
  }

  /// Kills at moments of the making, and lets `go_on` judge what is left of each. `usual`: so many,
  /// unless the environment says how many.
  void kill_at_moments(const Arguments& arguments, std::string_view over, int usual,
                       const std::function<void(const std::string& url)>& go_on) {
    const unsigned seed = seed_of_this_run();
    SCOPED_TRACE(fmt::format("IDEM_SEED={}", seed));
    int all = 0;
    {
      const auto whole = new_store(GetParam());
      const std::string said = run_until(*whole, INT_MAX, arguments, over);
      ASSERT_NE(said.find(over), std::string::npos) << said;
      all = whole->moments();
    }
    ASSERT_GT(all, 0);
    const int wanted = number_from("IDEM_FIRST_STARTS", 0);
    // Behind the first ones DynamoDB's nodes change the identity, and the next one waits.
    constexpr int before_changes = 8;
    const bool is_slow = wanted == 0 && GetParam() == "dynamodb";
    const auto moments =
        spread(is_slow ? std::min(all, before_changes) : all, wanted == 0 ? usual : wanted, seed);
    for (const int moment : moments) {
      SCOPED_TRACE(fmt::format("moment {} of {}", moment, all));
      const auto store = new_store(GetParam());
      const bool is_on_server = store->environment().empty();
      run_until(*store, is_on_server ? moment - 1 : moment, arguments, over);
      go_on(store->url());
      if (HasFailure()) return;
    }
    fmt::print("{}: seed={} moments={} killed={}\n", GetParam(), seed, all, moments.size());
  }

  Provider provider_;
};

class FirstStart : public MakingOfStore {};
INSTANTIATE_TEST_SUITE_P(Stores, FirstStart,
                         testing::Values("postgres", "mysql", "redis", "dynamodb", "hybrid",
                                         "sqlite", "embedded"),
                         [](const auto& kind) { return kind.param; });

TEST_P(FirstStart, S02_that_was_killed_is_continued_by_the_next_one) {
  int number = 0;
  // Of Redis, the next one waits 15 s for a node that is gone.
  const int usual = GetParam() == "redis" ? 1 : 3;
  kill_at_moments([this](const std::string& url) { return gateway_at(url); }, "role=admin", usual,
                  [&](const std::string& url) {
                    Gateway gateway({.upstream = provider_.address(), .store_url = url});
                    // As its supervisor does it, while it waits for such a node.
                    for (int again = 0; again < 8 && !gateway.running(); ++again) gateway.restart();
                    ASSERT_TRUE(gateway.running()) << gateway.process().output();
                    const std::string key = fmt::format("{}-{}", GetParam(), ++number);
                    const auto first = send_once(gateway.address(), charge(key));
                    EXPECT_EQ(first.status, 201) << first.raw;
                    EXPECT_TRUE(replays(first, send_once(gateway.address(), charge(key))));
                    EXPECT_EQ(provider_.effects(key), 1);
                  });
}

class FirstCopy : public MakingOfStore {};
INSTANTIATE_TEST_SUITE_P(Stores, FirstCopy,
                         testing::Values("postgres", "mysql", "redis", "dynamodb", "sqlite",
                                         "embedded"),
                         [](const auto& kind) { return kind.param; });

TEST_P(FirstCopy, S02_that_was_killed_is_continued_by_the_next_one) {
  const bool is_slow = GetParam() == "dynamodb" && number_from("IDEM_FIRST_STARTS", 0) == 0;
  if (is_slow) GTEST_SKIP() << "minutes of waiting; StoreCopy kills copies to it at their points";
  const TempDir dir;
  const std::string from = "sqlite:" + (dir.path() / "from.db").string();
  std::map<std::string, Response> answers;
  {
    Gateway gateway({.upstream = provider_.address(), .store_url = from});
    ASSERT_TRUE(gateway.running());
    for (int i = 0; i < 3; ++i) {
      const std::string key = fmt::format("key-{}", i);
      answers.emplace(key, send_once(gateway.address(), charge(key)));
    }
    ASSERT_EQ(gateway.terminate(), 0);
  }
  const auto copying = [&](const std::string& url) {
    return std::vector<std::string>{"store", "copy", from, url, "--keep-source"};
  };
  kill_at_moments(copying, "store_id", 1, [&](const std::string& url) {
    Process again({.program = built_program("idem"), .arguments = copying(url)});
    again.wait_for_line("\x01", long_wait);  // Comes never: until everything was printed.
    const int code = again.exit_code();
    const bool was_finished = again.output().find("finished copy, and stays") != std::string::npos;
    ASSERT_TRUE(code == 0 || was_finished) << code << again.output();
    const Gateway gateway({.upstream = provider_.address(), .store_url = url});
    ASSERT_TRUE(gateway.running()) << const_cast<Gateway&>(gateway).process().output();
    for (const auto& [key, first] : answers) {
      EXPECT_TRUE(replays(first, send_once(gateway.address(), charge(key)))) << key;
      EXPECT_EQ(provider_.effects(key), 1) << key;
    }
  });
}

}  // namespace
}  // namespace idem::test
