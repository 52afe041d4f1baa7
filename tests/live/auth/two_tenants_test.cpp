#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <random>

#include "support/bulk.hpp"
#include "support/scripted_live.hpp"

/// Two tenants with the same keys and the same bodies at the same time, over the same connections:
/// every byte of every answer must be the asker's own. IDEM_TWO_TENANTS_OPERATIONS says how many
/// requests; bench/two_tenants runs a million.
namespace idem::test {
namespace {

constexpr std::array<const char*, 2> tenants{"acme", "globex"};
constexpr int clients_of_tenants = 8;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// A body that says on each of its bytes whose it is.
std::string marked(const std::string& mark, std::size_t bytes) {
  std::string body;
  while (body.size() < bytes) body += mark;
  body.resize(bytes);
  return body;
}

/// Says to each request whose it was, which key it had, and which run this is.
class Marking {
 public:
  void operator()(UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      const std::uint64_t run = ++runs_;
      const auto tenant = find_field(request->head.fields, "X-Tenant-Id").value_or("");
      const auto key = find_field(request->head.fields, "Idempotency-Key").value_or("");
      const std::string mark = tenant + '/' + key + '/' + std::to_string(run) + ';';
      const auto body = marked(mark, mark.size() + run * 37 % 2'000);
      const bool sent = connection.write("HTTP/1.1 201 Created\r\nX-Mark: " + mark +
                                         "\r\nContent-Length: " + std::to_string(body.size()) +
                                         "\r\n\r\n" + body);
      if (!sent) return;
    }
  }
  std::uint64_t runs() const { return runs_; }

 private:
  std::atomic<std::uint64_t> runs_{0};
};

struct TenantTally {
  std::uint64_t asked = 0, firsts = 0, replays = 0, misuses = 0, in_progress = 0, foreign = 0,
                wrong = 0;
  std::string example{};

  void add(const TenantTally& other) {
    asked += other.asked;
    firsts += other.firsts;
    replays += other.replays;
    misuses += other.misuses;
    in_progress += other.in_progress;
    foreign += other.foreign;
    wrong += other.wrong;
    if (example.empty()) example = other.example;
  }
};

/// The answer that every later request of one tenant under one key must get.
struct Known {
  int variant = 0;
  std::string body{};
};

/// Answers to keys that all clients use: each may be the first.
class Shared {
 public:
  /// A few requests of each client in turn, so that several come to a new key at the same time.
  std::string key() { return "all-" + std::to_string(asked_++ / 16); }

  /// True when this is the answer that everybody had.
  bool same(const std::string& name, const std::string& body) {
    const std::lock_guard lock(mutex_);
    return bodies_.try_emplace(name, body).first->second == body;
  }

 private:
  std::atomic<std::uint64_t> asked_{0};
  std::mutex mutex_;
  std::map<std::string, std::string> bodies_;
};

class TenantClient {
 public:
  TenantClient(const std::string& address, int index, std::uint64_t seed, Shared& shared)
      : address_(address), index_(index), random_(seed), shared_(shared), connection_(address) {}

  TenantTally run(std::uint64_t operations) {
    for (std::uint64_t i = 0; i < operations; ++i) {
      ++tally_.asked;
      switch (random_() % 10) {
        case 0:
          ask_shared();
          break;
        case 1:
        case 2:
        case 3:
        case 4:
          ask_own(keys_++, 0);
          break;
        default:
          ask_own(keys_ == 0 ? 0 : keys_ - 1 - random_() % std::min<std::uint64_t>(keys_, recent),
                  random_() % 5 == 0 ? 1 : 0);
      }
    }
    return std::move(tally_);
  }

 private:
  static constexpr std::uint64_t recent = 256;

  // Both tenants use the same names for their keys, and the same bodies under them.
  Response ask(int tenant, const std::string& key, int variant) {
    if (!connection_.open()) connection_ = Connection(address_);
    const auto body = R"({"order":")" + key + R"(","variant":)" + std::to_string(variant) + '}';
    auto answer =
        connection_.exchange({.fields = {{"X-Tenant-Id", tenants[static_cast<std::size_t>(tenant)]},
                                         {"Content-Type", "application/json"},
                                         {"Idempotency-Key", key}},
                              .body = body});
    // Nothing that the other tenant's requests or answers hold: its name is in all of them.
    if (answer.raw.find(tenants[static_cast<std::size_t>(1 - tenant)]) != std::string::npos) {
      ++tally_.foreign;
      complain(answer);
    }
    return answer;
  }

  bool is_own(const Response& answer, int tenant, const std::string& key) {
    const auto mark = answer.get("X-Mark").value_or("");
    const auto begin = std::string(tenants[static_cast<std::size_t>(tenant)]) + '/' + key + '/';
    return mark.starts_with(begin) && answer.body == marked(mark, answer.body.size()) &&
           answer.body.size() >= mark.size();
  }

  void ask_own(std::uint64_t number, int variant) {
    const int tenant = static_cast<int>(random_() % 2);
    const auto key = "c" + std::to_string(index_) + "-" + std::to_string(number);
    const auto answer = ask(tenant, key, variant);
    auto& known = known_[static_cast<std::size_t>(tenant)];
    const auto found = known.find(number);
    if (found == known.end()) {
      const bool right =
          answer.status == 201 && is_own(answer, tenant, key) && !answer.get("Idempotent-Replayed");
      judge(right, answer, tally_.firsts);
      known[number] = {variant, answer.body};
    } else if (found->second.variant != variant) {
      judge(answer.status == 422 && json_text(answer.body, "code") == "key_reused", answer,
            tally_.misuses);
    } else {
      const bool right = answer.status == 201 && answer.body == found->second.body &&
                         is_own(answer, tenant, key) && answer.get("Idempotent-Replayed") == "true";
      judge(right, answer, tally_.replays);
    }
    while (!known.empty() && known.begin()->first + recent < keys_) known.erase(known.begin());
  }

  void ask_shared() {
    const int tenant = static_cast<int>(random_() % 2);
    const auto key = shared_.key();
    const auto answer = ask(tenant, key, 0);
    if (answer.status == 409) {
      judge(json_text(answer.body, "code") == "in_progress", answer, tally_.in_progress);
      return;
    }
    const bool right =
        answer.status == 201 && is_own(answer, tenant, key) &&
        shared_.same(tenants[static_cast<std::size_t>(tenant)] + ('/' + key), answer.body);
    judge(right, answer, answer.get("Idempotent-Replayed") ? tally_.replays : tally_.firsts);
  }

  void judge(bool right, const Response& answer, std::uint64_t& kind) {
    ++kind;
    if (right) return;
    ++tally_.wrong;
    complain(answer);
  }
  void complain(const Response& answer) {
    if (tally_.example.empty()) tally_.example = answer.trouble + answer.raw;
  }

  std::string address_;
  int index_;
  std::mt19937_64 random_;
  Shared& shared_;
  Connection connection_;
  TenantTally tally_;
  std::uint64_t keys_ = 0;
  std::array<std::map<std::uint64_t, Known>, 2> known_;
};

class TwoTenants : public Scripted {};

TEST_F(TwoTenants, T33_V03_no_byte_crosses) {
  const auto operations = number_from("IDEM_TWO_TENANTS_OPERATIONS", sanitized ? 4'000 : 20'000);
  const auto seed = number_from("IDEM_TWO_TENANTS_SEED", std::random_device{}());
  RecordProperty("seed", std::to_string(seed));
  const auto marking = std::make_shared<Marking>();
  upstream_ = std::make_unique<ScriptedUpstream>(
      [marking](UpstreamConnection& connection) { (*marking)(connection); },
      ScriptedUpstream::Options{.keep = false});
  gateway_ = std::make_unique<Gateway>(
      GatewayOptions{.upstream = upstream_->address(),
                     .store = dir_.path() / "two.db",
                     .flags = {"--threads", "2", "--keepalive-idle", "60s"}});
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();

  Shared shared;
  std::mutex mutex;
  TenantTally all;
  std::vector<std::thread> threads;
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < clients_of_tenants; ++i) {
    threads.emplace_back([&, i] {
      TenantClient client(gateway_->address(), i, seed + static_cast<std::uint64_t>(i), shared);
      const TenantTally own = client.run(operations / clients_of_tenants);
      const std::lock_guard lock(mutex);
      all.add(own);
    });
  }
  for (auto& thread : threads) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;

  std::cout << "seed " << seed << ": " << all.asked << " requests in " << took.count()
            << " s: " << all.firsts << " first, " << all.replays << " replayed, " << all.misuses
            << " misused, " << all.in_progress << " in progress; " << all.foreign
            << " with a foreign byte, " << all.wrong << " otherwise wrong\n";
  EXPECT_EQ(all.foreign, 0u) << all.example;
  EXPECT_EQ(all.wrong, 0u) << all.example;
  EXPECT_EQ(all.firsts, marking->runs()) << "each run was one client's first answer";
  EXPECT_GT(all.replays, operations / 8);
  EXPECT_GT(all.misuses, operations / 50);
}

}  // namespace
}  // namespace idem::test
