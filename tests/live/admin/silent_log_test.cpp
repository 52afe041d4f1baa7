#include <sys/ptrace.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "support/admin.hpp"
#include "support/back_off.hpp"

/// A log that nobody reads, and what the probes say of a loop that stands still.
namespace idem::test {
namespace {

/// The pipe of its log is full after some twenty lines.
class SilentLog : public Operated {
 protected:
  void SetUp() override {
    provider_ = std::make_unique<Provider>();
    ASSERT_TRUE(provider_->running());
    auto with_pipe = options(provider_->address());
    with_pipe.output_pipe_bytes = 4'096;
    gateway_ = std::make_unique<Gateway>(std::move(with_pipe));
    ASSERT_TRUE(gateway_->running());
  }

  /// Misuses of one key, each of which is a line of the log.
  void fill_the_pipe() {
    ASSERT_EQ(ask(charge("k")).status, 201);
    for (int i = 0; i < 200; ++i) {
      const auto other = ask(charge("k", "", R"({"amount":)" + std::to_string(i) + "}"));
      ASSERT_TRUE(is_problem(other, 422, "key_reused")) << i << ": " << other.raw;
    }
  }
  Response decide() {
    return post("/v1/keys/00112233445566778899aabbccddeeff/release",
                R"({"fence":1,"reason":"ticket 4711"})");
  }
};

TEST_F(SilentLog, R01_stops_no_payment_no_probe_no_decision_and_no_end) {
  gateway_->process().read_no_output();
  ASSERT_NO_FATAL_FAILURE(fill_the_pipe());
  EXPECT_EQ(ask(charge("after")).status, 201);
  EXPECT_EQ(get("/livez").status, 200);
  EXPECT_EQ(get("/readyz").status, 200);
  EXPECT_EQ(decide().status, 404);
  EXPECT_EQ(gateway_->terminate(), 0);

  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  const Json page = read("/v1/audit?limit=100&what=log.lost");
  std::string said;
  for (const Json& line : page["audit"].items) said += line["after"].string + '\n';
  // Of the decision's two lines, at once or one after the other.
  const bool in_one = said.find("lacks 2 of the lines 2 to 3.") != said.npos;
  const bool in_two = said.find("lacks 1 of the lines 2 to 2.") != said.npos &&
                      said.find("lacks 1 of the lines 3 to 3.") != said.npos;
  EXPECT_TRUE(in_one || in_two) << said;
  EXPECT_EQ(read("/v1/audit/verify")["first_bad"].kind, Json::Kind::null);
}

TEST_F(SilentLog, R01_is_whole_once_it_is_read_again) {
  auto& process = gateway_->process();
  process.read_no_output();
  ASSERT_NO_FATAL_FAILURE(fill_the_pipe());
  EXPECT_EQ(decide().status, 404);
  process.read_output_again();
  EXPECT_TRUE(process.wait_for_line("what=keys.release"));
  EXPECT_EQ(metric("idem_log_lines_dropped_total"), 0);
  EXPECT_EQ(gateway_->terminate(), 0);
  EXPECT_TRUE(process.wait_for_line(" stopped"));
  EXPECT_EQ(process.output().find("log_lines_dropped"), std::string::npos);
}

/// Another thread of a child process, which does not run for as long as this object lives.
class HeldThread {
 public:
  HeldThread(pid_t process, const std::string& name) {
    const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      std::string comm;
      std::getline(std::ifstream(task.path() / "comm"), comm);
      if (comm == name) thread_ = std::stoi(task.path().filename());
    }
    if (thread_ == 0 || ::ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr) != 0) return;
    if (::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) != 0) return;
    is_held_ = ::waitpid(thread_, nullptr, __WALL) == thread_;
  }
  ~HeldThread() {
    if (is_held_) ::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
  }
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;
  bool is_held() const { return is_held_; }

 private:
  pid_t thread_ = 0;
  bool is_held_ = false;
};

class StalledLoop : public Operated {
 protected:
  /// The answer once it is 503.
  Response until_503(const std::string& target) {
    const auto end = std::chrono::steady_clock::now() + patience;
    auto answer = get(target);
    while (answer.status == 200 && std::chrono::steady_clock::now() < end) {
      back_off();
      answer = get(target);
    }
    return answer;
  }
};

TEST_F(StalledLoop, R02_the_probes_name_it_first_the_one_then_the_other) {
  EXPECT_EQ(get("/readyz").status, 200);
  {
    const HeldThread held(gateway_->process().pid(), "idem-loop");
    if (!held.is_held()) GTEST_SKIP() << "this kernel lets no parent trace its child";
    const auto not_ready = until_503("/readyz");
    EXPECT_TRUE(is_problem(not_ready, 503, "loop_stalled")) << not_ready.raw;
    EXPECT_NE(not_ready.body.find("of the client listener"), std::string::npos) << not_ready.body;
    EXPECT_EQ(get("/livez").status, 200) << "ten seconds later";
    const auto not_alive = until_503("/livez");
    EXPECT_TRUE(is_problem(not_alive, 503, "loop_stalled")) << not_alive.raw;
    EXPECT_NE(not_alive.body.find("of the client listener"), std::string::npos) << not_alive.body;
  }
  const auto end = std::chrono::steady_clock::now() + patience;
  while (get("/livez").status != 200 && std::chrono::steady_clock::now() < end) back_off();
  EXPECT_EQ(get("/livez").status, 200);
  EXPECT_EQ(get("/readyz").status, 200);
}

}  // namespace
}  // namespace idem::test
