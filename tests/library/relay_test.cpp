#include "library/relayed.hpp"
#include "support/back_off.hpp"

#include <idem/worker_limits.hpp>

/// Messages: there if and only if the rows are, delivered at least once, in order, under one claim
/// at a time, and repeated only as their destination was declared.
namespace idem::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Stores, Relayed, testing::Values("sqlite", "postgres", "mysql"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Relayed,
       V24_S18_a_message_is_delivered_under_its_own_key_and_its_reference_noted_with_that) {
  std::string key;
  inbox_.answers([&](const Delivery& one, int) -> CallEnd {
    key = one.key;
    EXPECT_EQ(one.message.type, "payment.finished");
    EXPECT_EQ(one.message.aggregate_id, "p1");
    EXPECT_EQ(one.message.content_type, "application/json");
    EXPECT_EQ(one.attempt, 1);
    EXPECT_EQ(one.key, derived_key(one.operation, "outbox", one.id));
    return CallAnswered{"ok", "ref-1"};
  });
  const auto id = send(message(R"({"to":"ü"})", "p1"));
  Relay relay(*engine_, {destination()}, by_hand());
  EXPECT_EQ(relay.deliver_due(), 1);
  EXPECT_EQ(key.size(), 32);
  const auto after = stored(id);
  EXPECT_EQ(after.state, MessageState::delivered);
  EXPECT_EQ(after.reference, "ref-1");
  EXPECT_EQ(after.message.payload, R"({"to":"ü"})");
  EXPECT_TRUE(after.ended_at);
  EXPECT_EQ(relay.deliver_due(), 0);
  EXPECT_EQ(inbox_.payloads().size(), 1);
}

TEST_P(Relayed, V22_the_message_is_there_if_and_only_if_the_rows_and_the_completion_are) {
  const auto refused = guard_->serve_in_transaction(payment("k"), [&](Transaction& tx) -> Outcome {
    tx.enqueue(message("never"));
    (void)paying()(tx);
    return NotExecuted{{409, {}, "not now"}};
  });
  EXPECT_EQ(refused.status, 409);
  EXPECT_TRUE(outbox_.list({})->empty());
  EXPECT_EQ(payments(), 0);
  const auto answer = guard_->serve_in_transaction(payment("k"), [&](Transaction& tx) -> Outcome {
    tx.enqueue(message("once"));
    return paying()(tx);
  });
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(outbox_.list({})->size(), 1);
  EXPECT_EQ(payments(), 1);
  EXPECT_TRUE(replays(answer, guard_->serve_in_transaction(payment("k"), paying())));
  EXPECT_EQ(outbox_.list({})->size(), 1);
}

TEST_P(Relayed, S18_the_largest_message_has_the_longest_names) {
  const auto longest = [](std::string start) {
    start.resize(limits::message_name_bytes_max, '\'');
    return start;
  };
  const Message sent{.destination = longest("destination "),
                     .type = longest("type "),
                     .payload = std::string(limits::message_payload_bytes_max, '\\'),
                     .aggregate_type = longest("aggregate "),
                     .aggregate_id = longest("id "),
                     .content_type = longest("text/")};
  const StoredMessage kept = stored(send(sent));
  EXPECT_TRUE(kept.message.payload == sent.payload);
  EXPECT_EQ(kept.message.destination, sent.destination);
  EXPECT_EQ(kept.message.type, sent.type);
  EXPECT_EQ(kept.message.aggregate_type, sent.aggregate_type);
  EXPECT_EQ(kept.message.aggregate_id, sent.aggregate_id);
  EXPECT_EQ(kept.message.content_type, sent.content_type);
  const auto listed = outbox_.list({.destination = sent.destination});
  ASSERT_TRUE(listed) << listed.error();
  EXPECT_EQ(listed->size(), 1U);
}

TEST_P(Relayed, S18_a_message_that_cannot_be_sent_fails_the_transaction_with_the_reason) {
  const auto fails = [&](const Message& what) {
    std::string why;
    const auto answer = guard_->serve_in_transaction(
        payment(fmt::format("bad-{}-{}", what.type, what.payload.size())),
        [&](Transaction& tx) -> Outcome {
          EXPECT_EQ(tx.enqueue(what), "");
          why = tx.failure();
          return paying()(tx);
        });
    EXPECT_EQ(answer.status, 500);
    return why;
  };
  EXPECT_EQ(fails({.destination = "", .type = "t", .payload = "1"}),
            "enqueue: a message needs a destination and a type");
  EXPECT_EQ(fails({.destination = "d", .type = "u", .payload = "\xff"}),
            "enqueue: the payload is no UTF-8 text");
  EXPECT_EQ(fails({.destination = "d", .type = "v", .payload = std::string("a\0b", 3)}),
            "enqueue: the payload is no UTF-8 text");
  EXPECT_EQ(fails({.destination = "d", .type = "w", .payload = std::string(1024 * 1024 + 1, 'x')}),
            "enqueue: the payload is larger than 1 MiB");
  EXPECT_EQ(payments(), 0);
}

TEST_P(Relayed, V23_T59_poison_dies_with_its_history_and_the_messages_behind_it_go_on) {
  inbox_.answers([](const Delivery& one, int) -> CallEnd {
    if (one.message.payload == "poison") return CallNotDone{"it answered 422", 0ms};
    return CallAnswered{"ok", {}};
  });
  const auto poison = send(message("poison", "a"));
  const auto behind = send(message("behind", "a"));
  Relay relay(*engine_, {destination()}, by_hand());
  deliver_all(relay);
  EXPECT_EQ(inbox_.arrivals("poison"), 3);
  const auto dead = stored(poison);
  EXPECT_EQ(dead.state, MessageState::dead);
  EXPECT_EQ(dead.attempts, 3);
  EXPECT_EQ(dead.last_error, "it answered 422");
  EXPECT_FALSE(dead.may_have_arrived);
  const auto history = parse_json(dead.history);
  ASSERT_TRUE(history);
  ASSERT_EQ(history->items.size(), 3);
  EXPECT_EQ(history->items[2]["how"].string, "dead");
  EXPECT_EQ(stored(behind).state, MessageState::delivered);
  EXPECT_EQ(inbox_.payloads().back(), "behind");
  // Depth is visible.
  EXPECT_EQ(in_state(MessageState::dead), 1);

  // It was mended: redriven, it is delivered, and still shows when it was made.
  inbox_.answers({});
  Redrive order{.which = {.id = poison}, .dry_run = true, .reason = "mended"};
  const std::vector<Ordered> expected{{poison, "receipts", "payment.finished", "redriven"}};
  EXPECT_EQ(outbox_.redrive(order), expected);
  EXPECT_EQ(stored(poison).state, MessageState::dead);
  order.dry_run = false;
  EXPECT_EQ(outbox_.redrive(order), expected);
  EXPECT_TRUE(outbox_.redrive(order)->empty());
  deliver_all(relay);
  const auto after = stored(poison);
  EXPECT_EQ(after.state, MessageState::delivered);
  EXPECT_EQ(after.created_at, dead.created_at);
  EXPECT_EQ(parse_json(after.history)->items.size(), 5);
  EXPECT_EQ(inbox_.arrivals("poison"), 4);
}

TEST_P(Relayed, S18_a_message_refused_for_good_dies_at_once_and_can_be_discarded_with_a_reason) {
  inbox_.answers([](const Delivery&, int) -> CallEnd { return CallNotDone{"gone", 0ms, true}; });
  const auto id = send(message("m"));
  Relay relay(*engine_, {destination()}, by_hand());
  deliver_all(relay);
  EXPECT_EQ(inbox_.arrivals("m"), 1);
  EXPECT_EQ(outbox_.discard({.which = {.destination = "others"}, .reason = "r"})->size(), 0);
  EXPECT_EQ(outbox_.discard({.which = {}, .dry_run = true, .reason = "r"})->size(), 1);
  EXPECT_EQ(stored(id).state, MessageState::dead);
  EXPECT_EQ(outbox_.discard({.which = {}, .reason = "the customer left"})->size(), 1);
  const auto after = stored(id);
  EXPECT_EQ(after.state, MessageState::discarded);
  EXPECT_TRUE(after.history.find("the customer left") != std::string::npos);
  EXPECT_TRUE(outbox_.redrive({.which = {}, .reason = "r"})->empty());
}

TEST_P(Relayed, T59_T62_many_relays_and_redrives_at_once_deliver_nothing_twice) {
  inbox_.answers([](const Delivery&, int number) -> CallEnd {
    if (number <= 1) return CallNotDone{"dead for now", 0ms, true};
    return CallAnswered{"ok", {}};
  });
  constexpr int count = 40;
  for (int i = 0; i < count; ++i) send(message(fmt::format("m{}", i)));
  {
    Relay relay(*engine_, {destination()}, by_hand());
    deliver_all(relay);
  }
  EXPECT_EQ(in_state(MessageState::dead), count);
  std::vector<std::jthread> threads;
  std::atomic<int> redriven = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Relay relay(*engine_, {destination()}, by_hand());
      redriven += static_cast<int>(outbox_.redrive({.rate = 0, .reason = "all"})->size());
      while (in_state(MessageState::delivered) < count) relay.deliver_due();
    });
  }
  threads.clear();
  EXPECT_EQ(redriven, count);
  for (int i = 0; i < count; ++i) EXPECT_EQ(inbox_.arrivals(fmt::format("m{}", i)), 2);
}

TEST_P(Relayed, T62_a_late_relay_notes_nothing_and_the_receiver_knows_its_message_by_the_id) {
  // The first claim ends while its relay is still waiting for the answer.
  std::promise<void> late;
  auto gate = late.get_future().share();
  std::atomic<bool> is_out = false;
  std::vector<std::string> ids;
  std::mutex mutex;
  inbox_.answers([&](const Delivery& one, int number) -> CallEnd {
    {
      const std::lock_guard lock(mutex);
      ids.push_back(one.id);
    }
    if (number > 1) return CallAnswered{"ok", "the second"};
    is_out = true;
    gate.wait();
    return CallNotDone{"refused, says the first", 0ms, true};
  });
  const auto id = send(message("m"));
  auto options = by_hand();
  options.lease = 300ms;
  auto slow = destination();
  slow.timeout = 100ms;
  Relay first(*engine_, {slow}, options);
  std::jthread late_one([&] { first.deliver_due(); });
  while (!is_out) back_off();
  Relay second(*engine_, {slow}, options);
  deliver_all(second);
  late.set_value();
  late_one.join();
  const auto after = stored(id);
  EXPECT_EQ(after.state, MessageState::delivered);
  EXPECT_EQ(after.reference, "the second");
  EXPECT_EQ(ids, (std::vector<std::string>{id, id}));
}

TEST_P(Relayed, S16_S18_a_delivery_in_doubt_is_repeated_only_within_the_window) {
  inbox_.answers([](const Delivery&, int number) -> CallEnd {
    if (number == 1) return CallAmbiguous{"no answer", {}, 0ms};
    return CallAnswered{"ok", {}};
  });
  const auto within = send(message("within"));
  {
    Relay relay(*engine_, {destination(1h)}, by_hand());
    deliver_all(relay);
  }
  EXPECT_EQ(inbox_.arrivals("within"), 2);
  EXPECT_EQ(stored(within).state, MessageState::delivered);

  const auto never = send(message("never"));
  Relay relay(*engine_, {destination(0ms)}, by_hand());
  deliver_all(relay);
  EXPECT_EQ(inbox_.arrivals("never"), 1);
  const auto dead = stored(never);
  EXPECT_EQ(dead.state, MessageState::dead);
  EXPECT_TRUE(dead.may_have_arrived);
  // Redriving obeys the same, until an operator has looked.
  const auto verdict = [&](bool nothing_there) {
    return outbox_.redrive({.which = {}, .nothing_there = nothing_there, .reason = "r"})
        ->at(0)
        .verdict;
  };
  EXPECT_EQ(verdict(false), "may_have_arrived");
  EXPECT_EQ(stored(never).state, MessageState::dead);
  EXPECT_EQ(inbox_.arrivals("never"), 1);
  EXPECT_EQ(verdict(true), "redriven");
  deliver_all(relay);
  EXPECT_EQ(inbox_.arrivals("never"), 2);
  EXPECT_EQ(stored(never).state, MessageState::delivered);
}

TEST_P(Relayed, S16_S18_a_lowered_window_applies_to_messages_already_in_doubt) {
  inbox_.answers(
      [](const Delivery&, int) -> CallEnd { return CallAmbiguous{"no answer", {}, 0ms}; });
  const auto id = send(message("m"));
  {
    Relay relay(*engine_, {destination(24h)}, by_hand());
    EXPECT_EQ(relay.deliver_due(), 1);
  }
  EXPECT_EQ(stored(id).state, MessageState::waiting);
  Relay relay(*engine_, {destination(0ms)}, by_hand());
  deliver_all(relay);
  EXPECT_EQ(inbox_.arrivals("m"), 1);
  EXPECT_TRUE(stored(id).may_have_arrived);
}

TEST_P(Relayed, S16_S18_with_a_lookup_an_arrived_message_is_found_and_any_other_sent) {
  bool has_it = false;
  inbox_.answers([](const Delivery&, int number) -> CallEnd {
    if (number == 1) return CallAmbiguous{"no answer", {}, 0ms};
    return CallAnswered{"ok", {}};
  });
  auto asks = destination(0ms);
  asks.repetition.lookup = [&](const Delivery&) -> LookedUp {
    if (has_it) return CallAnswered{"ok", "found"};
    return NothingThere{};
  };
  asks.repetition.lookup_grace = 20ms;
  Relay relay(*engine_, {asks}, by_hand());
  has_it = true;
  const auto there = send(message("there"));
  deliver_all(relay);
  EXPECT_EQ(inbox_.arrivals("there"), 1);
  EXPECT_EQ(stored(there).reference, "found");
  has_it = false;
  const auto gone = send(message("gone"));
  deliver_all(relay);
  EXPECT_EQ(inbox_.arrivals("gone"), 2);
  EXPECT_EQ(stored(gone).state, MessageState::delivered);
}

TEST_P(Relayed, S18_retry_after_is_honoured) {
  inbox_.answers([](const Delivery&, int) -> CallEnd { return CallNotDone{"busy", 1h}; });
  const auto id = send(message("m"));
  Relay relay(*engine_, {destination()}, by_hand());
  EXPECT_EQ(relay.deliver_due(), 1);
  EXPECT_EQ(relay.deliver_due(), 0);
  const auto now = ask_and_wait(engine_->store(), Count{})->now;
  EXPECT_GT(stored(id).due_at, now + 59min);
}

TEST_P(Relayed, S18_a_destination_that_fails_again_and_again_is_left_alone) {
  inbox_.answers([](const Delivery&, int) -> CallEnd { return CallNotDone{"down", 0ms}; });
  for (int i = 0; i < 12; ++i) send(message(fmt::format("m{}", i)));
  Relay relay(*engine_, {destination()}, by_hand());
  EXPECT_EQ(relay.deliver_due(), 12);
  EXPECT_EQ(inbox_.payloads().size(), limits::breaker_failures);
  EXPECT_EQ(relay.deliver_due(), 0);
  // The others were given back untried.
  int tried = 0;
  const auto listed = *outbox_.list({});
  for (const auto& one : listed) tried += one.attempts;
  EXPECT_EQ(tried, limits::breaker_failures);
}

TEST_P(Relayed, S18_messages_are_listed_in_pages_and_old_deliveries_reaped) {
  for (int i = 0; i < 5; ++i) send(message(fmt::format("m{}", i)));
  auto page = *outbox_.list({.limit = 3});
  ASSERT_EQ(page.size(), 3);
  page = *outbox_.list({.after = page.back().seq, .limit = 3});
  ASSERT_EQ(page.size(), 2);
  EXPECT_TRUE(outbox_.list({.state = MessageState::dead})->empty());
  EXPECT_TRUE(outbox_.list({.destination = "others"})->empty());
  const auto listed = *outbox_.list({});
  for (const StoredMessage& one : listed) {
    const auto of_its_record = *outbox_.list({.operation = one.operation});
    ASSERT_EQ(of_its_record.size(),
              std::ranges::count(listed, one.operation, &StoredMessage::operation));
    EXPECT_TRUE(std::ranges::all_of(of_its_record, [&](const StoredMessage& other) {
      return other.operation == one.operation;
    }));
    EXPECT_TRUE(
        outbox_.list({.operation = one.operation, .after = of_its_record.back().seq})->empty());
    EXPECT_TRUE(outbox_.list({.state = MessageState::dead, .operation = one.operation})->empty());
    EXPECT_TRUE(outbox_.list({.destination = "others", .operation = one.operation})->empty());
  }
  EXPECT_TRUE(outbox_.list({.operation = RecordId{}})->empty());
  {
    Relay relay(*engine_, {destination()}, by_hand());
    deliver_all(relay);
  }
  EXPECT_EQ(in_state(MessageState::delivered), 5);
  auto options = by_hand();
  options.retention = 0ms;
  while (in_state(MessageState::delivered) > 0) {
    Relay relay(*engine_, {destination()}, options);
    relay.deliver_due();
  }
  EXPECT_TRUE(outbox_.list({})->empty());
}

// A relay dies at the first of a batch: only that one may have been sent.
TEST_P(Relayed, S16_where_nothing_is_declared_only_a_noted_message_counts_as_sent) {
  for (int i = 0; i < 4; ++i) send(message(fmt::format("m{}", i)));
  library::RelayQueue queue(*engine_->transactions(), "receipts");
  const auto claimed = queue.claim(16, 1ms, 0ms, true);
  ASSERT_TRUE(claimed && claimed->size() == 4);
  EXPECT_EQ(queue.note_sending(claimed->front()), true);
  Relay relay(*engine_, {destination(0ms)}, by_hand());
  deliver_all(relay);
  EXPECT_EQ(inbox_.payloads(), (std::vector<std::string>{"m1", "m2", "m3"}));
  const auto dead = stored(claimed->front().id);
  EXPECT_EQ(dead.state, MessageState::dead);
  EXPECT_TRUE(dead.may_have_arrived);
}

}  // namespace
}  // namespace idem::test
