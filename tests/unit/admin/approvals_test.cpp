#include "admin/approvals_api.hpp"

#include "admin/deciding.hpp"
#include "admin/keys.hpp"
#include "admin/outbox.hpp"
#include "core/bytes/hex.hpp"
#include "store/internal_sql.hpp"
#include "unit/admin/admin_over_store.hpp"

/// Orders that have their approvals, over a store that the test changes in between.
namespace idem::admin {
namespace {

/// A store in front of another one.
class Passing : public Store {
 public:
  explicit Passing(Store& inner) : inner_(inner) {}
  void call(StoreCall what, StoreCompletion done) override {
    inner_.call(std::move(what), std::move(done));
  }
  void watch(std::shared_ptr<Watcher> watcher) override { inner_.watch(std::move(watcher)); }
  const Identity& identity() const noexcept override { return inner_.identity(); }

 protected:
  Store& inner_;
};

/// Another process always comes first with the same decision.
class OvertakenStore final : public Passing {
 public:
  using Passing::Passing;
  void call(StoreCall what, StoreCompletion done) override {
    if (const auto* const verb = std::get_if<Resolve>(&what)) {
      inner_.call(StoreCall(*verb), [](const StoreResult&) {});
    }
    inner_.call(std::move(what), std::move(done));
  }
};

class ApprovedOrders : public AdminOverStore {
 protected:
  AdminParts over(Store& store) {
    return {.loop = loop_,
            .store = store,
            .spill = *spill_,
            .registry = registry_,
            .draining = draining_,
            .log = log_,
            .audit = audit_,
            .login = make_login(),
            .gauges = parts_.gauges,
            .parse_duration = parts_.parse_duration,
            .naming_parts = parts_.naming_parts};
  }
  static std::string nothing_there(const JobTarget& target) {
    return R"({"as":"failed_retryable","evidence":"e","reason":"r","fence":)" +
           std::to_string(target.fence) + "}";
  }
  std::string seen(const JobTarget& target) const {
    return "unknown fence=" + std::to_string(target.fence);
  }
  ApprovalRequest request_for(const JobTarget& target) const {
    return {.id = id_, .kind = ApprovalKind::resolve, .ref = to_hex(target.id.bytes)};
  }
  SharedCensus census_{loop_, *store_};
  KeysApi keys_{parts_, shard_, approvals_, census_};
};

TEST_F(ApprovedOrders, S19_negative_evidence_counts_from_the_moment_of_the_order) {
  const JobTarget target = unknown(1);
  OrderBody order = approved(nothing_there(target), seen(target));
  pass(Millis(120'000));
  const ApprovalRequest request = request_for(target);
  const auto early = run([&] { return keys_.decide(request, order); });
  EXPECT_EQ(early.status, 409);
  EXPECT_EQ(ask(Find{target.id})->state, State::unknown);
  order.approved->given_at = now();
  EXPECT_EQ(run([&] { return keys_.decide(request, order); }).status, 200);
}

TEST_F(ApprovedOrders, S19_the_moment_of_the_order_is_in_its_line) {
  OrderBody order = approved("{}", "");
  order.approved.reset();
  const StoreTime given = now();
  pass(Millis(5'000));
  const auto answer = run([&] {
    return approvals_.ask({.kind = ApprovalKind::jobs, .seen = "s", .given_at = given}, order);
  });
  EXPECT_EQ(answer.status, 202);
  const auto found = ask(ListJournals{std::string(approval_journals)});
  ASSERT_EQ(found.size(), 1U);
  ApprovalFold fold;
  for (const auto& line : ask(ReadLines{found[0].name}).lines) fold.see(line);
  ASSERT_TRUE(fold.request()) << fold.trouble();
  EXPECT_EQ(fold.request()->given_at, given);
  EXPECT_EQ(fold.asked_at(), now());
}

// The other process was thought dead, and decides between this one's look and its call.
TEST_F(ApprovedOrders, V29_what_another_process_decides_meanwhile_is_no_refusal) {
  const JobTarget target = unknown(1);
  pass(Millis(120'000));
  OvertakenStore store(*store_);
  AdminParts parts = over(store);
  KeysApi keys(parts, shard_, approvals_, census_);
  const OrderBody order = approved(nothing_there(target), seen(target));
  const ApprovalRequest request = request_for(target);
  const auto answer = run([&] { return keys.decide(request, order); });
  EXPECT_EQ(answer.status, 200) << answer.body;
  const auto evidence = ask(ReadEvidence{target.id});
  ASSERT_EQ(evidence.size(), 2U);
  EXPECT_TRUE(evidence[0].applied);
  EXPECT_FALSE(evidence[1].applied);
}

TEST(WhatCameOf, S19_a_call_that_may_have_been_done_is_no_failure) {
  using Code = StoreError::Code;
  EXPECT_TRUE(error_text({Code::in_doubt, "x"}).starts_with("not confirmed: x"));
  EXPECT_EQ(error_text({Code::unavailable, "x"}), "failed: x");
  EXPECT_EQ(error_text({Code::refused, "x"}), "failed: x");
}

TEST_F(ApprovedOrders, S19_a_doubt_about_an_approval_is_noted_as_one) {
  OrderBody order = approved("{}", "");
  order.approved.reset();
  fault_ = [](const StoreCall& call) -> std::optional<Fault> {
    const auto* const line = std::get_if<AppendLine>(&call);
    const auto* const lines = std::get_if<ReadLines>(&call);
    const bool is_approval = (line != nullptr && line->journal.starts_with(approval_journals)) ||
                             (lines != nullptr && lines->journal.starts_with(approval_journals));
    return is_approval ? Fault::lose_call : Fault::none;
  };
  const auto answer =
      run([&] { return approvals_.ask({.kind = ApprovalKind::jobs, .seen = "s"}, order); });
  EXPECT_EQ(answer.status, 503);
  EXPECT_TRUE(came_of().starts_with("not confirmed: ")) << came_of();
}

// ---- messages ----

/// An outbox with one dead letter, which another order holds.
class HeldMessage : public Transactions {
 public:
  TransactionEnd run(InTransaction) override { return {}; }
  std::expected<SqlRows, std::string> run(std::string_view, std::span<const SqlValue>) override {
    return SqlRows{};
  }

 protected:
  std::expected<SqlRows, std::string> run_internal(InternalStatement which,
                                                   std::span<const SqlValue> values) override {
    if (which != InternalStatement::find_message) return SqlRows{};
    SqlRow row(19, SqlValue(std::string_view()));
    for (const std::size_t number : {0, 8, 9, 10, 11, 12}) row[number] = SqlValue(std::int64_t{0});
    row[1] = values.front();
    row[7] = SqlValue(std::string_view("dead"));
    row[15] = SqlValue();
    row[18] = SqlValue(std::string_view("[]"));
    return SqlRows{row};
  }
};

class WithOutbox final : public Passing {
 public:
  WithOutbox(Store& inner, Transactions& transactions)
      : Passing(inner), transactions_(transactions) {}
  Transactions* transactions() noexcept override { return &transactions_; }

 private:
  Transactions& transactions_;
};

TEST_F(ApprovedOrders, V29_a_discard_that_discarded_nothing_is_not_done) {
  HeldMessage messages;
  WithOutbox store(*store_, messages);
  AdminParts parts = over(store);
  OutboxApi outbox(parts, offload_, approvals_);
  const std::string message(32, 'c');
  const OrderBody order =
      approved(R"({"id":")" + message + R"(","reason":"r"})", "dead attempts=0 last_error=");
  const ApprovalRequest request{.id = id_, .kind = ApprovalKind::discard};
  const auto answer = run([&] { return outbox.decide(request, order); });
  EXPECT_EQ(answer.status, 503) << answer.body;
}

}  // namespace
}  // namespace idem::admin
