#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <thread>

#include "support/shadowed.hpp"

/// The report of a shadow route against what enforcement then does with the same requests.
namespace idem::test {
namespace {

constexpr int clients = 8;

int requests_of_a_client() {
  const char* const text = std::getenv("IDEM_SHADOW_REQUESTS");
  return (text == nullptr ? 10'000 : std::atoi(text)) / clients;
}

unsigned seed() {
  const char* const text = std::getenv("IDEM_SEED");
  return text == nullptr ? 25U : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

/// As the members of the report.
using Counts = std::map<std::string, std::int64_t>;

void count(Counts& counts, const Response& answer) {
  ++counts["requests"];
  if (answer.get("Idempotent-Replayed")) {
    ++counts["duplicates"];
    return;
  }
  static const std::map<std::string, std::string> kinds{
      {"key_missing", "missing_key"},     {"key_invalid", "bad_key"},
      {"scope_missing", "missing_scope"}, {"key_reused", "misuse"},
      {"in_progress", "races"},           {"response_not_stored", "not_kept"},
      {"key_expired", "expired"}};
  const std::string code = json_text(answer.body, "code");
  if (const auto kind = kinds.find(code); kind != kinds.end()) {
    ++counts[kind->second];
  } else if (code == "outcome_unknown" && answer.status == 409) {
    ++counts["unknown_retries"];
  } else {
    ++counts["first"];
    const bool unknown =
        code == "outcome_unknown" || answer.get("Idempotency-Outcome") == "unknown";
    if (unknown) ++counts["unknown"];
  }
}

/// What one client sends. Every choice is by its seed, none by an answer.
class Client {
 public:
  Client(int number, const Gateway& gateway, const Provider& provider, std::string operation)
      : gateway_(gateway),
        provider_(provider),
        tenant_(fmt::format("t{}", number)),
        operation_(std::move(operation)) {
    random_.seed(seed() * 1'000 + static_cast<unsigned>(number));
  }

  void run(int requests) {
    while (sent_ < requests) step();
  }

  Counts counts;

 private:
  struct Sent {
    std::string key;
    std::string body;
  };

  int dice(int sides) { return std::uniform_int_distribution<int>(0, sides - 1)(random_); }

  Request request(const Sent& one, std::string_view fault = {}) const {
    auto made = without(charge(one.key, fault, one.body), "X-Tenant-Id");
    return with(std::move(made), "X-Tenant-Id", tenant_);
  }
  Sent make() {
    return {fmt::format("{}-{}", tenant_, made_++), fmt::format(R"({{"amount":{}}})", dice(1'000))};
  }
  void send(const Request& one) {
    ++sent_;
    const auto answer = send_once(gateway_.address(), one);
    // An answer that the upstream cut is one that passed in shadow.
    EXPECT_TRUE(answer.status != 0 || answer.trouble.starts_with("cut")) << answer.trouble;
    count(counts, answer);
  }

  void step() {
    static const std::vector<std::string> faults{"",
                                                 "",
                                                 "",
                                                 "",
                                                 "",
                                                 "drop-after",
                                                 "truncate",
                                                 "garbage",
                                                 "until-close",
                                                 "chunked",
                                                 "refuse=500",
                                                 "status=503",
                                                 "refuse=502",
                                                 "refuse=429",
                                                 "size=20000",
                                                 "refuse=404",
                                                 "outcome=unknown",
                                                 "outcome=not-executed"};
    const int what = dice(100);
    if (what < 45 || sent_before_.empty()) {
      sent_before_.push_back(make());
      const int fault = dice(2) == 0 ? 0 : dice(static_cast<int>(faults.size()));
      send(request(sent_before_.back(), faults[static_cast<std::size_t>(fault)]));
      return;
    }
    const Sent earlier =
        sent_before_[static_cast<std::size_t>(dice(static_cast<int>(sent_before_.size())))];
    if (what < 80) {
      send(request(earlier));
    } else if (what < 88) {
      send(request({earlier.key, R"({"amount":"another"})"}));
    } else if (what < 92) {
      send(without(request(make()), "Idempotency-Key"));
    } else if (what < 95) {
      send(request({"two words", earlier.body}));
    } else if (what < 97) {
      send(without(request(make()), "X-Tenant-Id"));
    } else {
      race();
    }
  }

  /// The second one comes while the upstream holds the first one's answer.
  void race() {
    const Sent one = make();
    sent_before_.push_back(one);
    const std::string hold = one.key;
    Connection first(gateway_.address());
    first.send(request(one, "hold=" + hold));
    ASSERT_TRUE(provider_.wait_held(hold, 1));
    wait_for_record(one.key);  // In shadow it comes beside the request, not before it.
    send(request(one));
    provider_.release(hold);
    ++sent_;
    count(counts, first.read_response());
  }

  void wait_for_record(const std::string& key) const {
    const Request find{
        .method = "GET",
        .target = fmt::format("/v1/keys?scope={}&operation={}&key={}", tenant_, operation_, key),
        .fields = {{"Host", gateway_.admin()}}};
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const auto answer = send_once(gateway_.admin(), find);
      const Json page = parse_json(answer.body).value_or(Json{});
      if (!page["keys"].items.empty()) return;
      ASSERT_LT(std::chrono::steady_clock::now(), until) << answer.raw;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const Gateway& gateway_;
  const Provider& provider_;
  const std::string tenant_;
  const std::string operation_;
  std::mt19937 random_;
  std::vector<Sent> sent_before_;
  int made_ = 0;
  int sent_ = 0;
};

class ShadowAgainstEnforcement : public testing::Test {
 protected:
  void SetUp() override { IDEM_NEED_PROGRAM("idem"); }

  struct Run {
    explicit Run(std::vector<std::string> flags) {
      flags.insert(flags.end(), {"--response-body-max", "16KiB"});
      gateway = std::make_unique<Gateway>(GatewayOptions{.upstream = provider.address(),
                                                         .store = dir.path() / "idem.db",
                                                         .flags = std::move(flags)});
    }
    Counts send(const std::string& operation) {
      std::vector<std::unique_ptr<Client>> all;
      std::vector<std::thread> threads;
      for (int i = 0; i < clients; ++i) {
        all.push_back(std::make_unique<Client>(i, *gateway, provider, operation));
        threads.emplace_back([one = all.back().get()] { one->run(requests_of_a_client()); });
      }
      for (auto& thread : threads) thread.join();
      Counts counts;
      for (const auto& one : all) {
        for (const auto& [name, number] : one->counts) counts[name] += number;
      }
      return counts;
    }
    TempDir dir;
    Provider provider;
    std::unique_ptr<Gateway> gateway;
  };
};

TEST_F(ShadowAgainstEnforcement, S22_V02_the_report_equals_what_enforcement_does) {
  Run shadow({"--enforce", "shadow"});
  ASSERT_TRUE(shadow.gateway->running()) << shadow.gateway->process().output();
  const Counts passed = shadow.send("shadow:POST%20/charges");
  EXPECT_EQ(passed.at("requests"), passed.at("first")) << "the gateway refused or replayed one";
  const Json report = shadow_report(*shadow.gateway, passed.at("requests"));

  Run enforced({"--enforce", "on"});
  ASSERT_TRUE(enforced.gateway->running()) << enforced.gateway->process().output();
  Counts done = enforced.send("POST%20/charges");
  EXPECT_EQ(done["requests"], passed.at("requests"));
  std::cout << "seed " << seed() << ":";
  for (const auto* name :
       {"requests", "first", "duplicates", "misuse", "missing_key", "bad_key", "missing_scope",
        "races", "unknown", "unknown_retries", "not_kept", "expired", "refused", "not_observed"}) {
    EXPECT_EQ(report[name].integer, done[name]) << name;
    std::cout << ' ' << name << ' ' << done[name];
  }
  std::cout << '\n';
  for (const auto* name : {"duplicates", "misuse", "missing_key", "bad_key", "missing_scope",
                           "races", "unknown", "unknown_retries", "not_kept"}) {
    EXPECT_GT(done[name], 0) << name << ": the requests do not show it";
  }
}

}  // namespace
}  // namespace idem::test
