#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/live.hpp"
#include "witness/witness.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IDEM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IDEM_SANITIZED 1
#endif
#endif

namespace idem::test {
namespace {

using Kind = Witnessed::Event::Kind;

/// A gateway with one loop and the witness inside.
class Witness : public Live {
 protected:
  void SetUp() override {
#ifdef IDEM_SANITIZED
    GTEST_SKIP() << "a sanitizer has its own allocator and wants to be loaded first";
#endif
    // It has the C library's allocator, which the witness counts; idem has another one.
    IDEM_NEED_PROGRAM("idem-crash");
    Live::SetUp();
    const auto path = dir_.path() / "witnessed";
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    ASSERT_EQ(::ftruncate(file, sizeof(Witnessed)), 0);
    void* memory = ::mmap(nullptr, sizeof(Witnessed), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    ASSERT_NE(memory, MAP_FAILED);
    seen_ = static_cast<Witnessed*>(memory);
    gateway_.reset();
    auto given = options(provider_->address());
    given.program = "idem-crash";
    given.flags.insert(given.flags.end(), {"--threads", "1"});
    given.environment = {"LD_PRELOAD=" IDEM_BIN_DIR "/libidem_witness.so",
                         "IDEM_WITNESS=" + path.string()};
    gateway_ = std::make_unique<Gateway>(given);
    ASSERT_TRUE(gateway_->running());
  }

  void TearDown() override {
    gateway_.reset();
    if (seen_ != nullptr) ::munmap(seen_, sizeof(Witnessed));
  }

  /// By the thread that serves requests.
  std::uint64_t allocations_of_loop() const {
    const auto tasks = "/proc/" + std::to_string(gateway_->process().pid()) + "/task/";
    for (const auto& one : seen_->allocations) {
      std::ifstream file(tasks + std::to_string(one.thread.load()) + "/comm");
      std::string name;
      if (std::getline(file, name) && name == "idem-loop") return one.count.load();
    }
    ADD_FAILURE() << "no thread is called idem-loop, or it has allocated nothing";
    return 0;
  }

  struct Seen {
    Kind kind;
    std::string begins;
  };
  std::vector<Seen> events_from(std::size_t first) const {
    std::vector<Seen> events;
    const std::size_t end = seen_->events_begun.load();
    EXPECT_LT(end, seen_->events.size());
    for (std::size_t i = first; i < end && i < seen_->events.size(); ++i) {
      const auto& event = seen_->events[i];
      EXPECT_TRUE(event.written.load());
      events.push_back({event.kind, event.begins.data()});
    }
    return events;
  }

  Witnessed* seen_ = nullptr;
};

TEST_F(Witness, a_replay_that_was_replayed_before_allocates_nothing) {
  Connection connection(gateway_->address());
  const auto tenant = std::string(40, 't');
  const Request request =
      with(without(charge("0d8a7d0e-6f4b-4c1e-9a53-1a6d2f6a4a11"), "X-Tenant-Id"), "X-Tenant-Id",
           tenant);
  const auto first = connection.exchange(request);
  ASSERT_EQ(first.status, 201) << first.raw;
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(replays(first, connection.exchange(request)));
  const std::uint64_t before = allocations_of_loop();
  ASSERT_GT(before, 0u);
  static constexpr int replayed = 2'000;
  for (int i = 0; i < replayed; ++i) ASSERT_EQ(connection.exchange(request).status, 201);
  const std::uint64_t made = allocations_of_loop() - before;
  EXPECT_EQ(made, 0u) << "in " << replayed << " replays";
  EXPECT_EQ(effects("0d8a7d0e-6f4b-4c1e-9a53-1a6d2f6a4a11"), 1);
}

// No bar of bench/ is reached by weakening this: what lies between reserve and dispatch, and
// between settle and answer, is a write that was made durable.
TEST_F(Witness, an_fdatasync_lies_before_the_dispatch_and_another_before_the_answer) {
  if (live_store_kind() != "sqlite")
    GTEST_SKIP() << "what is durable there, no fdatasync here tells";
  Connection connection(gateway_->address());
  for (int i = 0; i < 20; ++i) {
    const std::size_t begun = seen_->events_begun.load();
    const auto answer = connection.exchange(charge("durable-" + std::to_string(i)));
    ASSERT_EQ(answer.status, 201) << answer.raw;
    int synced = 0;
    int dispatched_after = -1;
    int answered_after = -1;
    for (const Seen& event : events_from(begun)) {
      if (event.kind == Kind::synced) ++synced;
      if (event.begins.starts_with("POST ")) dispatched_after = synced;
      if (event.begins.starts_with("HTTP/1.1 201")) answered_after = synced;
    }
    EXPECT_GE(dispatched_after, 1) << "request " << i;
    EXPECT_GE(answered_after, dispatched_after + 1) << "request " << i;
  }
}

}  // namespace
}  // namespace idem::test
