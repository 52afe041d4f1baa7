#include "check/command.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

/// The commands of the file: `restart` and `effects.command`.
namespace idem::check {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST(CheckCommand, its_output_is_read_and_its_failure_is_one) {
  EXPECT_EQ(run_command("echo 7", 5s, Output::collected), "7\n");
  EXPECT_EQ(run_command("echo 7", 5s, Output::dropped), "");
  EXPECT_EQ(run_command("head -c 3000000 /dev/zero", 5s, Output::collected)->size(), 1UL << 20);
  EXPECT_EQ(run_command("exit 3", 5s, Output::collected).error(), "the command failed: exit 3");
  EXPECT_EQ(run_command("ls /proc/self/fd | tail -n +5", 5s, Output::collected), "")
      << "it inherits stdin, stdout and stderr alone";
}

TEST(CheckCommand, what_it_leaves_in_the_background_keeps_nobody_waiting) {
  const auto began = Clock::now();
  const auto ran = run_command("sleep 20 & echo $!", 10s, Output::collected);
  EXPECT_LT(Clock::now() - began, 5s);
  ASSERT_TRUE(ran);
  EXPECT_EQ(::kill(static_cast<pid_t>(std::stol(*ran)), SIGKILL), 0) << "it went on";
}

TEST(CheckCommand, it_ends_with_its_time_and_so_does_its_group) {
  const auto began = Clock::now();
  const auto ran = run_command("sleep 20 & sleep 20", 200ms, Output::collected);
  EXPECT_LT(Clock::now() - began, 5s);
  ASSERT_FALSE(ran);
  EXPECT_TRUE(ran.error().contains("did not end within 200 ms")) << ran.error();
}

TEST(CheckCommand, a_signal_that_ends_the_program_ends_the_command_first) {
  static volatile std::sig_atomic_t interrupts = 0;
  interrupts = 0;
  struct sigaction before{};
  struct sigaction action{};
  action.sa_handler = [](int) { interrupts = interrupts + 1; };
  ::sigaction(SIGINT, &action, &before);
  const auto began = Clock::now();
  EXPECT_FALSE(run_command("kill -INT $PPID; sleep 20", 10s, Output::dropped));
  EXPECT_LT(Clock::now() - began, 5s);
  EXPECT_EQ(interrupts, 1) << "who handled it before still does";
  ::sigaction(SIGINT, &before, nullptr);
}

}  // namespace
}  // namespace idem::check
