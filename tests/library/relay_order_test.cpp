#include "library/relayed.hpp"
#include "support/back_off.hpp"

/// Messages about one aggregate are delivered in the order of their commits, by any relay.
namespace idem::test {
namespace {

using RelayedInOrder = Relayed;

INSTANTIATE_TEST_SUITE_P(Stores, RelayedInOrder, testing::Values("sqlite", "postgres", "mysql"),
                         [](const auto& kind) { return kind.param; });

TEST_P(RelayedInOrder,
       T61_S18_messages_of_one_aggregate_leave_in_order_also_where_the_first_fails) {
  inbox_.answers([](const Delivery& one, int number) -> CallEnd {
    if (one.message.payload == "a1" && number < 3) return CallNotDone{"not yet", 0ms};
    return CallAnswered{"ok", {}};
  });
  for (const char* const payload : {"a1", "a2", "a3"}) send(message(payload, "a"));
  for (const char* const payload : {"b1", "b2"}) send(message(payload, "b"));
  // Three relays at once.
  Relay one(*engine_, {destination()}, by_hand());
  Relay two(*engine_, {destination()}, by_hand());
  Relay three(*engine_, {destination()}, by_hand());
  {
    const std::jthread second([&] { deliver_all(two); });
    const std::jthread third([&] { deliver_all(three); });
    deliver_all(one);
  }
  const auto all = inbox_.payloads();
  const auto place = [&](const std::string& payload) {
    return std::ranges::find(all, payload) - all.begin();
  };
  EXPECT_EQ(inbox_.arrivals("a1"), 3);
  for (const char* const payload : {"a2", "a3", "b1", "b2"}) {
    EXPECT_EQ(inbox_.arrivals(payload), 1) << payload;
  }
  // The last try of a1 is the one that went through.
  EXPECT_LT(all.rend() - std::ranges::find(all.rbegin(), all.rend(), "a1") - 1, place("a2"));
  EXPECT_LT(place("a2"), place("a3"));
  EXPECT_LT(place("b1"), place("b2"));
}

TEST_P(RelayedInOrder,
       T61_T59_a_redriven_message_waits_for_a_later_one_of_its_aggregate_on_its_way) {
  inbox_.answers([](const Delivery&, int) -> CallEnd { return CallNotDone{"no", 0ms, true}; });
  send(message("first", "a"));
  send(message("second", "a"));
  {
    Relay relay(*engine_, {destination()}, by_hand());
    EXPECT_EQ(relay.deliver_due(), 1);
  }
  library::RelayQueue queue(*engine_->transactions(), "receipts");
  const auto second = queue.claim(16, 10s, 1h, false);
  ASSERT_TRUE(second && second->size() == 1);
  EXPECT_EQ(second->front().message.payload, "second");
  EXPECT_EQ(outbox_.redrive({.rate = 0, .reason = "r"})->size(), 1);
  EXPECT_TRUE(queue.claim(16, 10s, 1h, false)->empty());
  EXPECT_EQ(queue.note(second->front(), {.how = library::Noted::delivered}), true);
  EXPECT_EQ(queue.claim(16, 10s, 1h, false)->size(), 1);
}

using RelayedByTwo = Relayed;
INSTANTIATE_TEST_SUITE_P(Stores, RelayedByTwo, testing::Values("postgres", "mysql"),
                         [](const auto& kind) { return kind.param; });

// Two transactions at once, the one with the lower number committed last.
TEST_P(RelayedByTwo, T60_a_message_that_is_committed_late_is_delivered_all_the_same) {
  std::promise<void> enqueued;
  std::promise<void> go;
  std::jthread late([&] {
    (void)guard_->serve_in_transaction(payment("late"), [&](Transaction& tx) -> Outcome {
      tx.enqueue(message("late", "x"));
      enqueued.set_value();
      go.get_future().wait();
      return paying()(tx);
    });
  });
  enqueued.get_future().wait();
  send(message("early", "y"));
  Relay relay(*engine_, {destination()}, by_hand());
  deliver_all(relay);
  EXPECT_EQ(inbox_.payloads(), std::vector<std::string>{"early"});
  go.set_value();
  late.join();
  deliver_all(relay);
  EXPECT_EQ(inbox_.payloads(), (std::vector<std::string>{"early", "late"}));
}

// The same about one aggregate: the second waits for the first, so that what is seen is in order.
TEST_P(RelayedByTwo, T60_T61_of_one_aggregate_the_later_number_is_never_seen_first) {
  std::promise<void> enqueued;
  std::promise<void> go;
  std::jthread first([&] {
    (void)guard_->serve_in_transaction(payment("first"), [&](Transaction& tx) -> Outcome {
      tx.enqueue(message("first", "x"));
      enqueued.set_value();
      go.get_future().wait();
      return paying()(tx);
    });
  });
  enqueued.get_future().wait();
  std::jthread second([&] { send(message("second", "x")); });
  const auto waits = [&] {
    const auto rows = engine_->transactions()->run(
        // Not innodb_lock_waits, which shows what was read last for as long as it is read.
        GetParam() == "mysql" ? "SELECT CAST(variable_value AS SIGNED) FROM"
                                " information_schema.global_status"
                                " WHERE variable_name = 'Innodb_row_lock_current_waits'"
                              : "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
                                " AND NOT granted AND classid = 1229210959");
    return std::get<std::int64_t>(rows->at(0).at(0)) > 0;
  };
  while (!waits()) back_off();
  Relay relay(*engine_, {destination()}, by_hand());
  EXPECT_EQ(relay.deliver_due(), 0);
  go.set_value();
  first.join();
  second.join();
  deliver_all(relay);
  EXPECT_EQ(inbox_.payloads(), (std::vector<std::string>{"first", "second"}));
}

}  // namespace
}  // namespace idem::test
