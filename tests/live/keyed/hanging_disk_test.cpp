#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>

#include "support/admin.hpp"
#include "support/back_off.hpp"
#include "support/bulk.hpp"

/// A disk below the store that no longer answers: no call fails, and none returns.
namespace idem::test {
namespace {

struct Disk {
  std::string store;
  /// How it hangs: all calls, or those that change something, as on a frozen file system.
  bool is_frozen = false;
};

class HangingDisk : public Operated, public testing::WithParamInterface<Disk> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    if (sanitized) GTEST_SKIP() << "a sanitizer's library has to be the first";
    provider_ = std::make_unique<Provider>();
    std::filesystem::create_directory(disk());
    gateway_ = std::make_unique<Gateway>(GatewayOptions{.upstream = provider_->address(),
                                                        .store_url = store(),
                                                        .flags = {"--threads", "1"},
                                                        .environment = environment()});
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }

  std::filesystem::path disk() const { return dir_.path() / "disk"; }
  std::string store() const { return GetParam().store + ":" + (disk() / "store").string(); }
  std::vector<std::string> environment() const {
    return {"LD_PRELOAD=" IDEM_BIN_DIR "/libidem_hanging_disk.so",
            "IDEM_HANGING_FOLDER=" + disk().string(), "IDEM_DISK_HANGS=" + switch_.string()};
  }
  void hang() {
    const auto made = dir_.path() / "made";
    std::ofstream(made).put(GetParam().is_frozen ? 'w' : 'x');
    std::filesystem::rename(made, switch_);
  }
  void go_on() { std::filesystem::remove(switch_); }

  /// One more request, with a key of its own, until the gateway has noticed.
  void until_given_up() {
    const auto answer = ask(charge("during"));
    ASSERT_TRUE(is_problem(answer, 503, "store_unavailable")) << answer.raw;
    EXPECT_TRUE(answer.get("Retry-After"));
    ASSERT_EQ(metric("idem_store_up"), 0);
  }
  /// As the advice says.
  Response ask_again(const Request& request) {
    auto answer = ask(request);
    for (int i = 0; i < 1'500 && (answer.status == 503 || answer.status == 409); ++i) {
      back_off();
      answer = ask(request);
    }
    return answer;
  }

  const std::filesystem::path switch_ = dir_.path() / "hangs";
};

INSTANTIATE_TEST_SUITE_P(Disks, HangingDisk,
                         testing::Values(Disk{"sqlite"}, Disk{"embedded", true}),
                         [](const auto& disk) {
                           return disk.param.store + (disk.param.is_frozen ? "_frozen" : "");
                         });

// Not V15: those run once more for each store that is a server.
TEST_P(HangingDisk, S04_it_is_noticed_fails_closed_and_is_found_again_by_itself) {
  const auto first = ask(charge("before"));
  ASSERT_EQ(first.status, 201) << first.raw;
  ASSERT_TRUE(replays(first, ask(charge("before")))) << "the gateway remembers it now";
  Connection owner(gateway_->address());
  owner.send(charge("running", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));

  hang();
  ASSERT_NO_FATAL_FAILURE(until_given_up());
  EXPECT_TRUE(is_problem(get("/readyz"), 503, "store_unavailable"));
  EXPECT_EQ(get("/livez").status, 200);
  EXPECT_TRUE(is_problem(ask(charge("during")), 503, "store_unavailable"));
  EXPECT_TRUE(is_problem(ask(charge("running")), 503, "store_unavailable"));
  EXPECT_TRUE(replays(first, ask(charge("before")))) << "what memory holds is answered";
  const auto status =
      run_program(built_program("idem"), {"status", "--admin-url", "http://" + gateway_->admin()});
  EXPECT_EQ(status.exit_code, 1) << status.output;
  EXPECT_NE(status.output.find("DOWN"), std::string::npos) << status.output;
  EXPECT_EQ(provider_->ledger().arrivals, 2) << "nothing was sent meanwhile";
  provider_->release("h");

  go_on();
  EXPECT_EQ(owner.read_response().status, 201) << "its settling was owed";
  EXPECT_EQ(metric_from("idem_store_up", 1), 1);
  // The reserve has committed by now, and is released: its key does not wait for a lease.
  const auto during = ask_again(charge("during"));
  EXPECT_EQ(during.status, 201) << during.raw;
  EXPECT_EQ(provider_->of_key("during").arrivals, 1);
  EXPECT_EQ(provider_->of_key("running").arrivals, 1);
  EXPECT_EQ(ask(charge("running")).get("Idempotent-Replayed"), "true");
  EXPECT_EQ(get("/readyz").status, 200);
  const auto log = gateway_->process().output();
  const auto gone = log.find("store_unavailable");
  ASSERT_NE(gone, std::string::npos) << log;
  EXPECT_NE(log.find("no reply for 5 s", gone), std::string::npos) << log;
  EXPECT_EQ(log.find("store_unavailable", gone + 1), std::string::npos) << "one line";
  EXPECT_NE(log.find("store_available"), std::string::npos) << log;
}

TEST_P(HangingDisk, S04_a_process_killed_meanwhile_has_run_nothing) {
  hang();
  ASSERT_NO_FATAL_FAILURE(until_given_up());
  gateway_->kill();
  go_on();
  gateway_->restart(environment());
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  const auto during = ask(charge("during"));
  EXPECT_EQ(during.status, 201) << during.raw;
  EXPECT_EQ(provider_->of_key("during").arrivals, 1);
}

TEST_P(HangingDisk, S04_a_signal_to_stop_ends_the_process_within_a_bound) {
  hang();
  ASSERT_NO_FATAL_FAILURE(until_given_up());
  // Neither could end before the disk comes back.
  gateway_->process().signal(SIGHUP);
  EXPECT_TRUE(gateway_->process().wait_for_line("reload_failed"));
  gateway_->process().signal(SIGUSR2);
  EXPECT_TRUE(gateway_->process().wait_for_line("handover_refused"));
  EXPECT_EQ(gateway_->terminate(), 1);
  EXPECT_NE(gateway_->process().output().find("end_gave_up"), std::string::npos)
      << gateway_->process().output();
}

TEST_P(HangingDisk, S04_a_start_says_that_it_waits_and_ends_on_a_signal) {
  gateway_->terminate();
  hang();
  Process start(
      {.program = built_program("idem"),
       .arguments = {"gateway", "--listen", "127.0.0.1:0", "--upstream",
                     "http://" + provider_->address(), "--store", store(), "--scope", "static:one"},
       .environment = environment()});
  EXPECT_TRUE(start.wait_for_line("start_waits")) << start.output();
  start.signal(SIGTERM);
  EXPECT_EQ(start.exit_code(), 1) << start.output();
  EXPECT_NE(start.output().find("start_gave_up"), std::string::npos) << start.output();
}

/// The disk of the tokens alone.
class HangingTokens : public Operated {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    if (sanitized) GTEST_SKIP() << "a sanitizer's library has to be the first";
    provider_ = std::make_unique<Provider>();
    std::filesystem::create_directory(dir_.path() / "disk");
    const auto made = run_program(built_program("idem"), {"admin", "token", "grace", "--role",
                                                          "viewer", "--tokens-file", tokens_});
    ASSERT_EQ(made.exit_code, 0) << made.output;
    std::smatch found;
    ASSERT_TRUE(std::regex_search(made.output, found, std::regex("idem_[0-9a-f]{64}")));
    token_ = found.str();
    gateway_ = std::make_unique<Gateway>(
        GatewayOptions{.upstream = provider_->address(),
                       .store = dir_.path() / "idem.db",
                       .flags = {"--admin-tokens", tokens_},
                       .environment = {"LD_PRELOAD=" IDEM_BIN_DIR "/libidem_hanging_disk.so",
                                       "IDEM_HANGING_FOLDER=" + (dir_.path() / "disk").string(),
                                       "IDEM_DISK_HANGS=" + switch_.string()}});
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }

  int status_with(const std::string& token) {
    return send_once(gateway_->admin(), {.method = "GET",
                                         .target = "/v1/keys",
                                         .fields = {{"Host", gateway_->admin()},
                                                    {"Authorization", "Bearer " + token}}})
        .status;
  }

  const std::string tokens_ = dir_.path() / "disk" / "tokens";
  const std::filesystem::path switch_ = dir_.path() / "hangs";
  std::string token_;
};

TEST_F(HangingTokens, R02_a_disk_of_tokens_that_hangs_holds_up_no_probe) {
  ASSERT_EQ(status_with(token_), 200);
  const std::string another(token_.rbegin(), token_.rend());
  ASSERT_EQ(status_with(another), 401);
  std::ofstream(switch_).put('x');
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i) {
    askers.emplace_back([this] { EXPECT_EQ(status_with(token_), 200) << "as read before"; });
  }
  EXPECT_EQ(get("/livez").status, 200);
  EXPECT_EQ(get("/readyz").status, 200);
  EXPECT_EQ(get("/metrics").status, 200);
  for (auto& asker : askers) asker.join();
  EXPECT_EQ(status_with(another), 401);
  std::filesystem::remove(switch_);
  const auto revoked =
      run_program(built_program("idem"), {"admin", "revoke", "grace", "--tokens-file", tokens_});
  ASSERT_EQ(revoked.exit_code, 0) << revoked.output;
  while (status_with(token_) == 200) back_off();
  EXPECT_EQ(status_with(token_), 401);
}

}  // namespace
}  // namespace idem::test
