#include <sys/ptrace.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "support/admin.hpp"
#include "support/back_off.hpp"
#include "support/moved_clock.hpp"

/// A log that nobody reads, and what is said of a thread that stands still.
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

/// The threads of a child process that have this name. They do not run for as long as this lives.
class HeldThreads {
 public:
  HeldThreads(pid_t process, const std::string& name) {
    const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      std::string comm;
      std::getline(std::ifstream(task.path() / "comm"), comm);
      if (comm == name) hold(std::stoi(task.path().filename()));
    }
  }
  ~HeldThreads() {
    for (const pid_t thread : held_) ::ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
  }
  HeldThreads(const HeldThreads&) = delete;
  HeldThreads& operator=(const HeldThreads&) = delete;
  bool are_held() const { return !held_.empty() && !may_not_; }

 private:
  void hold(pid_t thread) {
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
      may_not_ = true;
      return;
    }
    held_.push_back(thread);
    may_not_ = may_not_ || ::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0 ||
               ::waitpid(thread, nullptr, __WALL) != thread;
  }

  std::vector<pid_t> held_;
  bool may_not_ = false;
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
    const HeldThreads held(gateway_->process().pid(), "idem-loop");
    if (!held.are_held()) GTEST_SKIP() << "this kernel lets no parent trace its child";
    const auto not_ready = until_503("/readyz");
    EXPECT_TRUE(is_problem(not_ready, 503, "loop_stalled")) << not_ready.raw;
    EXPECT_NE(not_ready.body.find("of the client listener"), std::string::npos) << not_ready.body;
    EXPECT_GE(metric("idem_loop_stalled_seconds"), 5);
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

class EndedLease : public Operated {
 protected:
  void SetUp() override {
    provider_ = std::make_unique<Provider>();
    ASSERT_TRUE(provider_->running());
    auto moved = options(provider_->address());
    moved.program = "idem-crash";
    moved.environment = {clock_.environment()};
    gateway_ = std::make_unique<Gateway>(std::move(moved));
    ASSERT_TRUE(gateway_->running());
  }
  MovedClock clock_;
};

TEST_F(EndedLease, R28_has_its_line_and_its_count_also_where_a_retry_meets_it_first) {
  IDEM_NEED_PROGRAM("idem-crash");
  auto client = std::thread([&] { ask(charge("k", "hold=h")); });
  ASSERT_TRUE(provider_->wait_held("h", 1));
  {
    const HeldThreads sweeper(gateway_->process().pid(), "idem-workers");
    if (sweeper.are_held()) {
      clock_.pass(3600);
      EXPECT_TRUE(is_problem(ask(charge("k")), 409, "outcome_unknown"));
      EXPECT_TRUE(gateway_->process().wait_for_line("warning lease_expired operation_ref="));
      EXPECT_NE(gateway_->process().output().find("from=in_progress to=unknown"),
                std::string::npos);
      EXPECT_EQ(metric("idem_zombie_keys_total"), 1);
    }
  }
  provider_->release("h");
  client.join();
}

}  // namespace
}  // namespace idem::test
