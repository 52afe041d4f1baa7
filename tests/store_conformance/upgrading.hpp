#pragma once

#include "store/internal_sql.hpp"
#include "store_conformance/asking.hpp"

#include <idem/transaction.hpp>

/// Work of every kind that an older program leaves in a store, and its end under the newer one.
namespace idem::test {

/// What the older program did, as far as its end needs it.
struct WorkLeft {
  Execute unknown;
  Execute in_phases;
  std::string message = std::string(32, 'a');
};

inline SqlRows internal_rows(Store& store, InternalStatement which,
                             std::initializer_list<SqlValue> values) {
  const auto rows = InternalSql::run(*store.transactions(), which, values);
  if (rows) return *rows;
  ADD_FAILURE() << rows.error();
  return {};
}

/// Claims the message for no time at all, so that the next claim finds it due again.
inline SqlRows claim_message(Store& store) {
  return internal_rows(store, InternalStatement::claim_messages,
                       {std::string("d"), std::int64_t{1}, std::int64_t{0}, std::int64_t{3'600'000},
                        std::int64_t{0}});
}

inline SqlRows open_flow(Store& store, const WorkLeft& left, int token_number) {
  return internal_rows(
      store, InternalStatement::open_flow,
      {to_hex(left.in_phases.id.bytes), std::string("pay"), SqlBytes{"input"}, std::int64_t{1000},
       to_hex(token(token_number).bytes), std::int64_t{0}, std::string("charged"), std::string()});
}

/// Key 1 is unknown; key 2 runs in phases, and its second attempt does not know how the first one's
/// call ended; key 3's lease and key 4's retention end at once; a message may have arrived.
inline WorkLeft leave_work(Store& store) {
  WorkLeft left{.unknown = run(store, 1), .in_phases = run(store, 2)};
  EXPECT_TRUE(ask_and_wait(store, a_mark_unknown(left.unknown)));
  open_flow(store, left, 1);
  // The first attempt was at its first phase, whose row a new attempt would begin anew.
  internal_rows(store, InternalStatement::pass_phase,
                {to_hex(left.in_phases.id.bytes), std::string("started"), std::string("charged"),
                 std::int64_t{1000}, std::int64_t{0}, std::string("sent")});
  EXPECT_TRUE(ask_and_wait(store, Advance{key(2), left.in_phases.attempt, "charged"}));
  open_flow(store, left, 2);
  Reserve brief = a_reserve_in(store, 3);
  brief.lease = 1ms;
  EXPECT_TRUE(ask_and_wait(store, brief));
  brief = a_reserve_in(store, 4);
  brief.retention = 1ms;
  const auto outcome = ask_and_wait(store, brief);
  EXPECT_TRUE(ask_and_wait(store, a_complete(std::get<Execute>(*outcome))));
  internal_rows(store, InternalStatement::put_message,
                {left.message, to_hex(left.in_phases.id.bytes), std::string("d"), std::string(),
                 std::string(), std::string("t"), std::string("p"), std::string("c")});
  EXPECT_EQ(claim_message(store).size(), 1u);
  return left;
}

/// Two claims were made before: the second found that the first one's delivery may have arrived.
inline void expect_message_is_delivered(Store& store) {
  const SqlRows claimed = claim_message(store);
  ASSERT_EQ(claimed.size(), 1u);
  const auto number = [&](std::size_t column) {
    return std::get<std::int64_t>(claimed[0].at(column));
  };
  EXPECT_EQ(number(10), 3) << "its claim";
  EXPECT_EQ(number(11), 1) << "it may have arrived";
  EXPECT_TRUE(std::holds_alternative<std::int64_t>(claimed[0].at(13))) << "it is known since when";
  const auto note = [&](std::int64_t claim) {
    return internal_rows(store, InternalStatement::note_delivery,
                         {claimed[0].at(0), claim, std::string("delivered"), std::string("ref"),
                          std::string(), std::int64_t{0}, std::int64_t{0}})
        .size();
  };
  EXPECT_EQ(note(2), 0u) << "of the older program's claim";
  EXPECT_EQ(note(3), 1u);
}

inline void expect_work_ends(Store& store, const WorkLeft& left) {
  const auto flow = open_flow(store, left, 3);
  ASSERT_EQ(flow.size(), 1u);
  EXPECT_EQ(std::get<std::string>(flow[0].at(0)), "charged");
  EXPECT_TRUE(std::holds_alternative<std::int64_t>(flow[0].at(3))) << "a call was open";
  EXPECT_EQ(ask_and_wait(store, a_complete(left.in_phases))->verdict, Verdict::done);
  expect_message_is_delivered(store);

  const auto swept = ask_and_wait(store, Sweep{10});
  ASSERT_TRUE(swept && swept->size() == 1u);
  EXPECT_EQ(swept->front().id, key(3));
  const auto reaped = ask_and_wait(store, Reap{10});
  ASSERT_TRUE(reaped && reaped->size() == 1u);
  EXPECT_EQ(reaped->front().id, key(4));

  const auto unknown = ask_and_wait(store, List{.state = State::unknown});
  ASSERT_TRUE(unknown && unknown->size() == 2u);
  EXPECT_EQ(unknown->front().id, key(1));
  const auto resolved =
      ask_and_wait(store, a_resolve(1, Resolve::As::completed, left.unknown.attempt.fence));
  EXPECT_EQ(resolved->verdict, Resolve::Verdict::done);
  for (const int number : {1, 2}) {
    EXPECT_TRUE(is<Replay>(*ask_and_wait(store, a_reserve_in(store, number, 9)))) << number;
  }
  EXPECT_GT(run(store, 5).attempt.fence, left.in_phases.attempt.fence);
}

}  // namespace idem::test
