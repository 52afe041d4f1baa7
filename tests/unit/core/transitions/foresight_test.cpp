#include "core/transitions/foresight.hpp"

#include "store/stores.hpp"

#include <idem/store_wait.hpp>

#include <gtest/gtest.h>

#include <atomic>

/// What is foreseen is what a store then does.
namespace idem {
namespace {

class Foresight : public testing::Test {
 protected:
  Reserve reserve(std::uint8_t name, std::uint8_t print = 1) {
    Reserve verb;
    verb.id.bytes[0] = name;
    verb.scope = "acme";
    verb.operation = "pay";
    verb.fingerprints = {{1, {print}}};
    verb.token.bytes[0] = ++tokens_;
    verb.lease = Millis(60'000);
    verb.retention = Millis(60'000);
    verb.tombstone = Millis(60'000);
    verb.generation = store_->identity().generation;
    return verb;
  }
  /// Without asking for it.
  Foreseen foreseen(const StoreCall& call, const Reserve& names) {
    SnapshotTable table;
    const auto now = ask_and_wait(*store_, Count{})->now;
    table.put(names.id, *ask_and_wait(*store_, Find{names.id}));
    for (const auto& other : names.also) {
      table.put(other.id, *ask_and_wait(*store_, Find{other.id}));
    }
    return foresee(call, table, now);
  }
  /// The alternative of the outcome, foreseen and then asked for.
  std::pair<std::size_t, std::size_t> both(const Reserve& verb) {
    const Foreseen before = foreseen(verb, verb);
    const auto after = ask_and_wait(*store_, verb);
    EXPECT_TRUE(before.result && after);
    return {std::get<ReserveOutcome>(*before.result).index(), after->index()};
  }

  std::atomic<std::int64_t> now_{1'000'000};
  std::unique_ptr<Store> store_ =
      std::move(open_memory({}, [this] { return StoreTime(Millis(now_.load())); }).value());
  std::uint8_t tokens_ = 0;
};

TEST_F(Foresight, S05_each_outcome_is_foreseen) {
  const auto expect = [&](const Reserve& verb, std::size_t outcome) {
    const auto [before, after] = both(verb);
    EXPECT_EQ(before, outcome);
    EXPECT_EQ(after, outcome);
  };
  const auto first = reserve(1);
  const Foreseen fresh = foreseen(first, first);
  EXPECT_TRUE(fresh.write.after);
  EXPECT_FALSE(*ask_and_wait(*store_, Find{first.id})) << "foreseeing makes no record";
  const auto won = ask_and_wait(*store_, first);
  const auto* execute = std::get_if<Execute>(&*won);
  ASSERT_NE(execute, nullptr);
  expect(reserve(1), ReserveOutcome(InProgress{}).index());
  expect(reserve(1, 2), ReserveOutcome(KeyMisuse{}).index());
  (void)ask_and_wait(*store_, Complete{execute->id, execute->attempt, {201, {}, "x", true}, ""});
  expect(reserve(1), ReserveOutcome(Replay{}).index());
  expect(reserve(2), ReserveOutcome(Execute{}).index());
  auto renamed = reserve(3);
  renamed.also.push_back({first.id, {}});
  expect(renamed, ReserveOutcome(Replay{}).index());
  auto full = reserve(4);
  full.quota = no_room;
  expect(full, ReserveOutcome(QuotaExceeded{}).index());
}

TEST_F(Foresight, S03_the_end_of_a_lease_is_foreseen_and_not_made) {
  const auto verb = reserve(1);
  ASSERT_TRUE(ask_and_wait(*store_, verb));
  now_ += 60'001;
  const auto late = reserve(1);
  const Foreseen seen = foreseen(late, late);
  ASSERT_TRUE(seen.result);
  EXPECT_TRUE(std::holds_alternative<Unknown>(std::get<ReserveOutcome>(*seen.result)));
  EXPECT_EQ((*ask_and_wait(*store_, Find{verb.id}))->state, State::in_progress);
}

TEST_F(Foresight, S03_an_accept_says_whether_it_would_store_its_request) {
  const Accept accept{reserve(1), "the request"};
  const Foreseen fresh = foreseen(accept, accept.as);
  ASSERT_TRUE(fresh.result);
  EXPECT_TRUE(std::holds_alternative<Pending>(std::get<ReserveOutcome>(*fresh.result)));
  EXPECT_TRUE(fresh.write.change.request);
  ASSERT_TRUE(ask_and_wait(*store_, accept));
  const Foreseen again = foreseen(accept, accept.as);
  EXPECT_TRUE(std::holds_alternative<Pending>(std::get<ReserveOutcome>(*again.result)));
  EXPECT_TRUE(again.write.is_empty());
}

TEST_F(Foresight, T30_a_damaged_record_is_foreseen_as_damaged) {
  const auto verb = reserve(1);
  SnapshotTable table;
  table.put(verb.id, std::unexpected(StoreError{StoreError::Code::damaged, "bytes", verb.id}));
  const Foreseen seen = foresee(verb, table, StoreTime(Millis(1)));
  ASSERT_FALSE(seen.result);
  EXPECT_EQ(seen.result.error().code, StoreError::Code::damaged);
}

}  // namespace
}  // namespace idem
