#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>

#include "support/admin.hpp"

/// What lies in a process's memory is in clear, so no dump of it may lie about.
namespace idem::test {
namespace {

class CoreDump : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    GTEST_SKIP() << "a sanitizer sets its own limit of core dumps";
#endif
#endif
    rlimit core{};
    ASSERT_EQ(::getrlimit(RLIMIT_CORE, &core), 0);
    if (core.rlim_max != RLIM_INFINITY) GTEST_SKIP() << "this shell allows nobody core dumps";
  }

  /// Whether the kernel dumped a process of these settings that a signal of a defect ended.
  bool is_dumped(const std::string& more) {
    const auto store = dir_.path() / "idem.db";
    const auto idem = built_program("idem").string();
    std::string command = fmt::format("{} {} --store sqlite:{} --admin 127.0.0.1:0 {}", idem,
                                      GetParam(), store.string(), more);
    if (GetParam() == std::string("gateway")) {
      command += " --listen 127.0.0.1:0 --upstream http://127.0.0.1:9 --scope header:X-Tenant-Id";
      command += " --trust-scope-header";
    } else {
      EXPECT_EQ(run_program(idem, {"migrate", "--store", "sqlite:" + store.string()}).exit_code, 0);
    }
    Process process({.program = "/bin/sh",
                     .arguments = {"-c", fmt::format("cd {} && ulimit -c unlimited && exec {}",
                                                     dir_.path().string(), command)}});
    EXPECT_FALSE(process.wait_for_address("admin").empty()) << process.output();
    process.signal(SIGABRT);
    const auto status = process.wait();
    EXPECT_TRUE(status && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGABRT);
    return status && WCOREDUMP(*status);
  }

  TempDir dir_;
};

TEST_P(CoreDump, V33_there_is_none_unless_it_was_asked_for) {
  EXPECT_FALSE(is_dumped(""));
  for (const auto& file : std::filesystem::directory_iterator(dir_.path())) {
    EXPECT_FALSE(file.path().filename().string().starts_with("core")) << file.path();
  }
  EXPECT_TRUE(is_dumped("--core-dumps"));
}

INSTANTIATE_TEST_SUITE_P(Processes, CoreDump, testing::Values("gateway", "worker"));

}  // namespace
}  // namespace idem::test
