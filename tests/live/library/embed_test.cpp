#include <fmt/format.h>
#include <sqlite3.h>

#include <atomic>
#include <set>
#include <thread>

#include "support/json.hpp"
#include "support/live.hpp"
#include "support/shared_store.hpp"

/// examples/embed, as its reader would run it.
namespace idem::test {
namespace {

class Embed : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("embed");
    if (GetParam() != "sqlite") shared_ = std::make_unique<SharedStoreUrl>(GetParam());
    url_ = shared_ ? shared_->url() : "sqlite:" + (dir_.path() / "payments.db").string();
    start();
  }
  void start() {
    service_ = std::make_unique<Process>(
        ProcessOptions{.program = built_program("embed"), .arguments = {url_, "0"}});
    address_ = service_->wait_for_address("embed");
    ASSERT_FALSE(address_.empty()) << service_->output();
  }
  static Request payment(std::string_view key, std::string_view body = R"({"amount":5})") {
    Request request = charge(key, {}, body);
    request.target = "/payments";
    return request;
  }
  /// Nobody may have the store open.
  int rows() {
    const std::string sql = "SELECT count(*) FROM payments";
    if (shared_) return std::stoi(Psql(shared_->database()).run(sql));
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open((dir_.path() / "payments.db").c_str(), &db), SQLITE_OK);
    int count = -1;
    const auto keep = [](void* out, int, char** cells, char**) {
      *static_cast<int*>(out) = std::stoi(cells[0]);
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), keep, &count, nullptr), SQLITE_OK);
    sqlite3_close(db);
    return count;
  }
  Response ask(const Request& request) { return send_once(address_, request); }

  TempDir dir_;
  std::unique_ptr<SharedStoreUrl> shared_;
  std::string url_;
  std::string address_;
  std::unique_ptr<Process> service_;
};

INSTANTIATE_TEST_SUITE_P(Stores, Embed, testing::Values("sqlite", "postgres"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Embed, S17_a_retry_gets_the_same_payment_also_after_a_crash) {
  const auto first = ask(payment("k"));
  EXPECT_EQ(first.status, 201) << first.raw;
  EXPECT_EQ(first.get("Idempotency-Outcome"), "stored");
  EXPECT_TRUE(is_problem(ask(payment("k", "{}")), 422, "key_reused"));
  EXPECT_TRUE(is_problem(ask(without(payment("k"), "Idempotency-Key")), 400, "key_missing"));
  service_->signal(SIGKILL);
  service_->wait();
  ASSERT_NO_FATAL_FAILURE(start());
  const auto retry = ask(payment("k"));
  EXPECT_EQ(retry.status, 201);
  EXPECT_EQ(retry.body, first.body);
  EXPECT_EQ(retry.get("Idempotent-Replayed"), "true");
}

TEST_P(Embed, V19_S17_killed_under_load_it_pays_each_key_once) {
  constexpr int keys_each = 200;
  constexpr int clients = 4;
  constexpr int kills = 5;
  std::atomic<int> begun = 0;
  std::mutex mutex;
  std::map<std::string, std::set<std::string>> received;  // Under the mutex, as is address_.
  std::vector<std::thread> threads;
  for (int client = 0; client < clients; ++client) {
    threads.emplace_back([&, client] {
      for (int i = 0; i < keys_each; ++i) {
        const auto key = fmt::format("k-{}-{}", client, i);
        ++begun;
        Response answer;
        while (answer.status != 201) {
          const auto address = [&] {
            const std::lock_guard lock(mutex);
            return address_;
          }();
          answer = send_once(address, payment(key));
        }
        const std::lock_guard lock(mutex);
        received[key].insert(answer.body);
      }
    });
  }
  for (int kill = 1; kill <= kills; ++kill) {
    while (begun < kill * keys_each * clients / (kills + 1)) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    service_->signal(SIGKILL);
    service_->wait();
    start();
  }
  for (auto& one : threads) one.join();
  std::set<std::string> payments;
  for (const auto& [key, bodies] : received) {
    EXPECT_EQ(bodies.size(), 1U) << key;
    payments.insert(bodies.begin(), bodies.end());
  }
  EXPECT_EQ(payments.size(), static_cast<std::size_t>(keys_each * clients));
  for (const auto& [key, bodies] : received) {
    EXPECT_EQ(ask(payment(key)).body, *bodies.begin()) << "what was answered once stays";
  }
  service_->signal(SIGKILL);
  service_->wait();
  EXPECT_EQ(rows(), keys_each * clients) << "and there is no payment without an answer";
  fmt::print("kills={} keys={} paid_twice=0\n", kills, received.size());
}

}  // namespace
}  // namespace idem::test
