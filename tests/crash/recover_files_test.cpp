#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "crash/judge.hpp"
#include "support/admin.hpp"
#include "support/live.hpp"

/// A log that is damaged after a kill -9: no gateway starts on it, and `idem store recover` makes a
/// store of what can be read. The provider's ledger is the judge.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

constexpr int keys_before_the_kill = 40;

class DamagedLogs : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    start();
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  void start() {
    gateway_ = std::make_unique<Gateway>(GatewayOptions{
        .upstream = provider_.address(), .store_url = url(), .flags = {"--lease", "40s"}});
  }
  Response ask(const Request& request) { return send_once(gateway_->address(), request); }
  static Ran store(std::vector<std::string> words) {
    words.insert(words.begin(), "store");
    return run_program(built_program("idem"), std::move(words), {});
  }
  std::string file(const std::string& name) const { return dir_.path() / name; }
  std::string url() const { return GetParam() + ":" + file("idem.db"); }
  bool is_directory() const { return GetParam() == "embedded"; }

  /// Its newest one.
  std::string log() const {
    if (!is_directory()) return file("idem.db-wal");
    std::string newest;
    for (const auto& entry : fs::directory_iterator(file("idem.db") + "/commits")) {
      const std::string name = entry.path();
      if (name.ends_with(".commits") && has_frame(name, 0)) newest = std::max(newest, name);
    }
    return newest;
  }
  static bool has_frame(const std::string& path, std::uint64_t at) {
    std::ifstream in(path, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(at));
    std::string magic(4, '\0');
    return in.read(magic.data(), 4) && magic == "IDM1";
  }

  /// A bit in the middle of what was confirmed.
  void flip_a_bit() const {
    const std::string path = log();
    std::uint64_t at = 0;
    if (is_directory()) {
      std::vector<std::uint64_t> frames;
      for (std::uint64_t page = 0; page < fs::file_size(path); page += 4'096) {
        if (has_frame(path, page)) frames.push_back(page);
      }
      at = frames[frames.size() / 2] + 100;
    } else {
      at = 32 + fs::file_size(path) / 4'120 / 2 * 4'120 + 700;
    }
    std::fstream bytes(path, std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekg(static_cast<std::streamoff>(at));
    const int before = bytes.get();
    bytes.seekp(static_cast<std::streamoff>(at));
    bytes.put(static_cast<char>(before ^ 4));
  }

  TempDir dir_;
  Provider provider_;
  std::unique_ptr<Gateway> gateway_;
};

INSTANTIATE_TEST_SUITE_P(Stores, DamagedLogs, testing::Values("sqlite", "embedded"),
                         [](const auto& kind) { return kind.param; });

TEST_P(DamagedLogs, S22_T01_one_flipped_bit_refuses_the_start_and_a_recovery_runs_nothing_again) {
  std::map<std::string, Response> first;
  for (int number = 0; number < keys_before_the_kill; ++number) {
    const std::string key = fmt::format("k{}", number);
    first.emplace(key, ask(charge(key)));
    ASSERT_EQ(first[key].status, 201);
  }
  Connection running(gateway_->address());
  running.send(charge("runs", "hold=h"));
  ASSERT_TRUE(provider_.wait_held("h", 1));
  const Ran in_use = store({"recover", url(), file("new.db")});
  EXPECT_EQ(in_use.exit_code, 5);
  EXPECT_NE(in_use.output.find("stop the gateway"), std::string::npos) << in_use.output;
  gateway_->kill();
  EXPECT_EQ(gateway_->process().exit_code(), 128 + SIGKILL);
  provider_.release("h");

  flip_a_bit();
  start();
  ASSERT_FALSE(gateway_->running());
  EXPECT_NE(gateway_->process().output().find("damaged"), std::string::npos)
      << gateway_->process().output();
  EXPECT_EQ(store({"check", url()}).exit_code, 5);
  EXPECT_FALSE(fs::exists(file("new.db")));
  const Ran recovered = store({"recover", url(), file("new.db")});
  ASSERT_EQ(recovered.exit_code, 0) << recovered.output;
  EXPECT_NE(recovered.output.find("Keys may be missing from 20"), std::string::npos)
      << recovered.output;
  const Ran again = store({"recover", url(), file("new.db")});
  EXPECT_EQ(again.exit_code, 5) << again.output;
  EXPECT_EQ(store({"check", url()}).exit_code, 5) << "it stays as it is";
  const Ran restored = store({"restore", file("new.db"), url(), "--replace"});
  ASSERT_EQ(restored.exit_code, 0) << restored.output;

  start();
  ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  int replayed = 0;
  for (const auto& [key, answer] : first) {
    const Response now = ask(charge(key));
    if (replays(answer, now)) ++replayed;
    EXPECT_TRUE(replays(answer, now) || is_problem(now, 409, "outcome_unknown")) << key << now.raw;
    EXPECT_EQ(provider_.effects(key), 1) << key;
  }
  // What the damaged commit had of one key is what may be unknown.
  EXPECT_GE(replayed, keys_before_the_kill - 1);
  EXPECT_TRUE(is_problem(ask(charge("runs")), 409, "outcome_unknown"));
  EXPECT_EQ(provider_.effects("runs"), 1);
}

}  // namespace
}  // namespace idem::test
