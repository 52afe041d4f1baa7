#include "admin/audit/audit_trail.hpp"

#include "admin/audit/audit_chain.hpp"
#include "store/faulty.hpp"
#include "store/stores.hpp"

#include <gtest/gtest.h>

#include <idem/store_wait.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <random>
#include <thread>

/// The audit over a store that loses calls and replies.
namespace idem::admin {
namespace {

class Trail : public testing::Test {
 protected:
  Trail() : thread_([this] { loop_.run("test-loop"); }) {}
  ~Trail() override {
    loop_.stop();
    thread_.join();
    trail_.reset();
    store_.reset();
  }

  void over(FaultPlan plan) {
    auto memory = open_memory({}, {});
    ASSERT_TRUE(memory);
    store_ = make_faulty(std::move(*memory), std::move(plan));
    trail_.emplace(loop_, *store_, log_);
  }
  static AuditEntry entry(std::string reason) {
    AuditEntry made;
    made.who = "ada";
    made.what = "keys.resolve";
    made.reason = std::move(reason);
    return made;
  }
  /// Runs `job` on the loop, and returns when all coroutines have ended.
  void run(Loop::Job job) {
    std::promise<void> done;
    std::function<void()> look = [&] {
      if (loop_.running() == 0) return done.set_value();
      loop_.post([&] { look(); });
    };
    loop_.post([&] {
      job();
      look();
    });
    done.get_future().wait();
  }
  using Seqs = std::vector<std::optional<std::uint64_t>>;
  /// Appends `count` lines at once.
  Seqs append(int count) {
    Seqs results(static_cast<std::size_t>(count));
    run([&] {
      for (int n = 0; n < count; ++n) {
        loop_.spawn(append_one(std::to_string(n), results[static_cast<std::size_t>(n)]));
      }
    });
    return results;
  }
  Task<void> append_one(std::string reason, std::optional<std::uint64_t>& result) {
    auto appending = trail_->append(entry(std::move(reason)));
    const auto seq = co_await appending;
    if (seq) result = *seq;
  }
  Task<void> append_by(AuditTrail& trail, std::string who, int count) {
    for (int n = 0; n < count; ++n) {
      auto appending = trail.append(entry(who));
      const auto seq = co_await appending;
      EXPECT_TRUE(seq);
    }
  }
  /// The reasons of all lines, which must be a whole chain.
  std::vector<std::string> reasons() {
    store_->flush();
    std::vector<std::string> found;
    AuditChain chain(first_link(store_->identity().scope_secret), {store_->identity().secret});
    for (std::uint64_t at = 0;;) {
      const auto page = ask_and_wait(*store_, ReadLines{std::string(audit_journal), at, 1'000});
      if (!page) continue;  // The plan loses these, too.
      for (const JournalLine& line : page->lines) {
        chain.see(line.seq, line.bytes);
        found.push_back(parse_audit_line(line.bytes)->entry.reason);
        at = line.seq;
      }
      if (page->lines.empty() || at == page->last) break;
    }
    EXPECT_EQ(chain.verdict().first_bad, std::nullopt) << chain.verdict().why;
    return found;
  }

  Loop loop_;
  std::vector<std::string> events_;
  LogSink log_ = [this](LogLevel, std::string_view event, std::initializer_list<LogField>) {
    events_.emplace_back(event);
  };
  std::unique_ptr<FaultyStore> store_;
  std::optional<AuditTrail> trail_;
  std::thread thread_;
};

bool appends(const StoreCall& call) { return std::holds_alternative<AppendLine>(call); }

TEST_F(Trail, S19_lines_of_many_callers_follow_each_other) {
  over({});
  const auto seqs = append(50);
  const auto found = reasons();
  ASSERT_EQ(found.size(), 50U);
  for (std::size_t n = 0; n < 50; ++n) {
    ASSERT_TRUE(seqs[n]);
    EXPECT_EQ(found[*seqs[n] - 1], std::to_string(n));
  }
  EXPECT_EQ(std::ranges::count(events_, "audit"), 50);
}

TEST_F(Trail, S19_a_lost_reply_is_settled_by_the_line_that_lies_there) {
  for (const Fault fault : {Fault::lose_reply, Fault::lose_call, Fault::late_call}) {
    bool is_over = false;
    FaultPlan plan;
    plan.decide = [&](const StoreCall& call, std::uint64_t) -> std::optional<Fault> {
      if (!appends(call) || std::exchange(is_over, true)) return Fault::none;
      return fault;
    };
    over(std::move(plan));
    EXPECT_EQ(append(1).front(), 1U);
    EXPECT_EQ(append(1).front(), 2U);
    EXPECT_EQ(reasons(), (std::vector<std::string>{"0", "0"})) << static_cast<int>(fault);
    trail_.reset();
  }
}

TEST_F(Trail, S19_without_the_stores_word_there_is_no_line_to_rely_on) {
  FaultPlan plan;
  plan.decide = [](const StoreCall& call, std::uint64_t) -> std::optional<Fault> {
    return appends(call) ? Fault::refuse : Fault::none;
  };
  over(std::move(plan));
  EXPECT_EQ(append(1).front(), std::nullopt);
  EXPECT_EQ(reasons(), std::vector<std::string>{});
  EXPECT_EQ(std::ranges::count(events_, "audit"), 0);
}

// Each line that was confirmed is there once; the others once at most.
TEST_F(Trail, S19_random_faults_neither_lose_nor_double_a_line) {
  const char* const given = std::getenv("IDEM_SEED");
  const std::uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("IDEM_SEED=%llu\n", static_cast<unsigned long long>(seed));
  FaultPlan plan;
  plan.seed = seed;
  plan.refuse = 50;
  plan.lose_call = 100;
  plan.lose_reply = 150;
  plan.late_call = 50;
  over(std::move(plan));
  constexpr int count = 500;
  const auto seqs = append(count);
  const auto found = reasons();
  int confirmed = 0;
  for (std::size_t n = 0; n < seqs.size(); ++n) {
    const auto times = std::ranges::count(found, std::to_string(n));
    EXPECT_LE(times, 1) << n << ", IDEM_SEED=" << seed;
    if (!seqs[n]) continue;
    ++confirmed;
    EXPECT_EQ(times, 1) << n << ", IDEM_SEED=" << seed;
    EXPECT_EQ(found.at(*seqs[n] - 1), std::to_string(n)) << "IDEM_SEED=" << seed;
  }
  EXPECT_GT(confirmed, count / 4);
}

// Two processes of one store.
TEST_F(Trail, S19_two_appenders_keep_one_chain_and_see_each_other) {
  over({});
  AuditTrail other(loop_, *store_, log_);
  run([&] {
    loop_.spawn(append_by(*trail_, "a", 30));
    loop_.spawn(append_by(other, "b", 30));
  });
  const auto found = reasons();
  EXPECT_EQ(std::ranges::count(found, "a"), 30);
  EXPECT_EQ(std::ranges::count(found, "b"), 30);
  EXPECT_EQ(std::ranges::count(events_, "audit_broken"), 0);
}

// Who writes to the store can append a line that names the one before it, but not sign it.
TEST_F(Trail, S19_a_line_that_no_secret_made_is_named_once_by_who_meets_it) {
  over({});
  Secret invented{};
  invented.fill(7);
  const auto forge = [&](std::uint64_t seq) {
    const auto page = ask_and_wait(*store_, ReadLines{std::string(audit_journal), seq - 2, 1});
    const std::string line = write_audit_line(seq, StoreTime(Millis(0)), entry("forged"),
                                              link_of(page->lines.at(0).bytes), invented);
    EXPECT_TRUE(ask_and_wait(*store_, AppendLine{std::string(audit_journal), seq - 1, line}));
  };
  append(1);
  EXPECT_EQ(std::ranges::count(events_, "audit_broken"), 0);
  forge(2);
  append(2);
  EXPECT_EQ(std::ranges::count(events_, "audit_broken"), 1) << "a running process";
  forge(5);
  trail_.emplace(loop_, *store_, log_);
  append(2);
  EXPECT_EQ(std::ranges::count(events_, "audit_broken"), 2) << "one that starts";
}

TEST_F(Trail, S19_settings_are_noted_where_they_differ_from_the_last_note) {
  over({});
  const auto note = [&](std::string what, std::vector<NotedSetting> settings) {
    const std::size_t before = reasons().size();
    run([&] { trail_->note_settings(what, "gateway :1", settings); });
    return reasons().size() - before;
  };
  const NotedSetting listen{"listen", "a", "a"};
  EXPECT_EQ(note("config.start", {listen, {"store", "x:secret@y", "x:***@y"}}), 1U);
  EXPECT_EQ(note("config.start", {listen, {"store", "x:secret@y", "x:***@y"}}), 0U);
  trail_.emplace(loop_, *store_, log_);
  EXPECT_EQ(note("config.start", {listen, {"store", "x:secret@y", "x:***@y"}}), 0U);
  EXPECT_EQ(note("config.reload", {listen, {"store", "x:other@y", "x:***@y"}}), 1U);
  EXPECT_EQ(note("config.reload", {listen}), 1U) << "one was removed";
  const auto page = ask_and_wait(*store_, ReadLines{std::string(audit_journal)});
  ASSERT_TRUE(page);
  for (const JournalLine& line : page->lines) {
    EXPECT_EQ(line.bytes.find("secret@"), std::string::npos);
  }
  EXPECT_EQ(parse_audit_line(page->lines.at(1).bytes)->entry.after, "store: x:***@y\n");
  EXPECT_EQ(parse_audit_line(page->lines.at(2).bytes)->entry.after, "store: removed\n");
}

}  // namespace
}  // namespace idem::admin
