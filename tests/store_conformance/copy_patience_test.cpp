#include "store/store_copy.hpp"
#include "store_conformance/asking.hpp"
#include "store_conformance/forwarding_store.hpp"
#include "store_conformance/harness.hpp"

/// A copy from or to a store that does not answer everything at once.
namespace idem::test {
namespace {

using Result = std::expected<CopyPass, CopyError>;

/// Of a store that a copy writes to, the calls that it answers with "unavailable".
class Throttled final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  void call(StoreCall what, StoreCompletion done) override {
    if (std::holds_alternative<Find>(what)) begin_turn();
    const auto* put = std::get_if<PutRecord>(&what);
    if (put != nullptr && put->record && left_-- <= 0) {
      ++refused;
      return refuse(std::move(done), StoreError::Code::unavailable);
    }
    const auto* line = std::get_if<AppendLine>(&what);
    if (line != nullptr && line->behind + 1 == lost_line) {
      lost_line = 0;  // It is appended, and its reply is lost.
      return ForwardingStore::call(std::move(what),
                                   [done = std::move(done)](const StoreResult&) mutable {
                                     refuse(std::move(done), StoreError::Code::in_doubt);
                                   });
    }
    ForwardingStore::call(std::move(what), std::move(done));
  }

  void begin_turn() { left_ = allowed; }

  int allowed = 1'000'000;  ///< Records that are put after each reading.
  std::uint64_t lost_line = 0;
  int refused = 0;

 private:
  static void refuse(StoreCompletion done, StoreError::Code code) {
    done(std::unexpected(StoreError{code, "too much at once"}));
  }
  int left_ = 0;
};

/// The one that it is copied from.
class Source final : public ForwardingStore {
 public:
  Source(Store& inner, std::unique_ptr<Throttled>& target)
      : ForwardingStore(inner), target_(target) {}
  void call(StoreCall what, StoreCompletion done) override {
    if (std::holds_alternative<Find>(what)) target_->begin_turn();
    ForwardingStore::call(std::move(what), std::move(done));
  }

 private:
  std::unique_ptr<Throttled>& target_;
};

class CopyPatienceTest : public testing::Test {
 protected:
  void SetUp() override {
    begin_anew("target");
    for (int number = 1; number <= 200; ++number) {
      Complete complete = a_complete(test::run(*from_, number));
      ASSERT_TRUE(test::try_ask(*from_, complete));
    }
    for (std::uint64_t line = 0; line < 700; ++line) {
      ASSERT_TRUE(test::try_ask(*from_, AppendLine{"audit", line, std::to_string(line)}));
    }
  }
  Result copy(Millis patience = copy_patience_default) {
    Source from(*from_, to_);
    return copy_records(from, *to_, CopySource::kept, [](const CopyPass&) {}, patience);
  }
  void begin_anew(const std::string& name) {
    to_.reset();
    inner_ = place_.open(name, test_settings());
    to_ = std::make_unique<Throttled>(*inner_);
  }

  TestClock clock_;
  StorePlace place_{"sqlite:", clock_};
  std::unique_ptr<Store> from_ = place_.open("source", test_settings());
  std::unique_ptr<Store> inner_;
  std::unique_ptr<Throttled> to_;
};

TEST_F(CopyPatienceTest, S22_a_store_that_throttles_gets_less_at_once_and_all_in_the_end) {
  to_->allowed = 8;
  const Result first = copy();
  ASSERT_TRUE(first) << first.error().why;
  EXPECT_EQ(first->records, 200U);
  EXPECT_LE(first->put, 200U) << "none of them twice";
  EXPECT_GT(first->asked_again, 0U);
  EXPECT_LT(to_->refused, 500);
  EXPECT_FALSE(first->is_clean()) << "what was asked twice is compared once more";
  const Result second = copy();
  ASSERT_TRUE(second && second->is_clean());
  EXPECT_EQ(second->source, second->target);
}

TEST_F(CopyPatienceTest, S22_a_store_that_takes_nothing_ends_it_with_what_it_says) {
  to_->allowed = 0;
  const Result none = copy(Millis(300));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, CopyError::Kind::unavailable);
  EXPECT_EQ(none.error().why, "TO: too much at once");
}

TEST_F(CopyPatienceTest, S22_a_line_whose_reply_was_lost_is_there_once) {
  for (const std::uint64_t line : {1U, 300U, 700U}) {
    to_->lost_line = line;
    const Result pass = copy();
    ASSERT_TRUE(pass) << pass.error().why;
    EXPECT_EQ(pass->journal_lines, 700U);
    EXPECT_EQ(test::try_ask(*inner_, ReadLines{.journal = "audit", .limit = 1'000})->lines,
              test::try_ask(*from_, ReadLines{.journal = "audit", .limit = 1'000})->lines);
    ASSERT_TRUE(copy()->is_clean());
    begin_anew("target" + std::to_string(line));
  }
}

}  // namespace
}  // namespace idem::test
