#include <idem/outbox.hpp>
#include <idem/relay.hpp>

#include <algorithm>
#include <map>
#include <mutex>

#include "library/guarded.hpp"
#include "library/relay_queue.hpp"

/// Messages: there if and only if the rows are, delivered at least once, in order, under one claim
/// at a time, and repeated only as their destination was declared.
namespace idem::test {
namespace {

using namespace std::chrono_literals;

/// Where messages arrive.
class Inbox {
 public:
  using Answer = std::function<CallEnd(const Delivery&, int number)>;

  CallEnd take(const Delivery& delivery) {
    Answer answer;
    int number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = ++arrivals_[delivery.message.payload];
      payloads_.push_back(delivery.message.payload);
      answer = answer_;
    }
    return answer ? answer(delivery, number) : CallAnswered{"ok", "ref-" + delivery.id};
  }
  void answers(Answer answer) { answer_ = std::move(answer); }

  std::vector<std::string> payloads() {
    const std::lock_guard lock(mutex_);
    return payloads_;
  }
  int arrivals(const std::string& payload) {
    const std::lock_guard lock(mutex_);
    return arrivals_[payload];
  }

 private:
  std::mutex mutex_;
  Answer answer_;
  std::map<std::string, int> arrivals_;
  std::vector<std::string> payloads_;
};

class Relayed : public Guarded {
 protected:
  Relayed() : outbox_(*engine_->transactions()) {}

  Destination destination(Millis deduplicates = 1h) {
    Destination made{.name = "receipts",
                     .send = [this](const Delivery& one) { return inbox_.take(one); }};
    made.timeout = 1s;
    made.retry_first = 1ms;
    made.retry_max = 2ms;
    made.attempts_max = 3;
    made.repetition.deduplicates = deduplicates;
    return made;
  }
  static RelayOptions by_hand() {
    RelayOptions options;
    options.interval = 0ms;
    return options;
  }
  static Message message(const std::string& payload, const std::string& aggregate = {}) {
    return {.destination = "receipts",
            .type = "payment.finished",
            .payload = payload,
            .aggregate_type = "payment",
            .aggregate_id = aggregate};
  }

  /// One request that pays and sends; the message's id.
  std::string send(const Message& what) {
    static std::atomic<int> number = 0;
    std::string id;
    const auto answer = guard_->serve_in_transaction(payment(fmt::format("send-{}", ++number)),
                                                     [&](Transaction& tx) -> Outcome {
                                                       id = tx.enqueue(what);
                                                       return paying()(tx);
                                                     });
    EXPECT_EQ(answer.status, 201) << answer.body;
    return id;
  }
  StoredMessage stored(const std::string& id) {
    const auto found = outbox_.find(id);
    EXPECT_TRUE(found && *found);
    return found && *found ? **found : StoredMessage{};
  }
  std::uint64_t in_state(MessageState state) {
    if (state == MessageState::delivered) {
      return outbox_.list({.state = state, .limit = 1000})->size();
    }
    std::uint64_t all = 0;
    const auto counted = outbox_.count();
    EXPECT_TRUE(counted.has_value());
    if (!counted) return 0;
    for (const auto& count : *counted) {
      if (count.state == state) all += count.messages;
    }
    return all;
  }
  /// Until nothing waits, except for what has been put off for long.
  void deliver_all(Relay& relay) {
    while (in_state(MessageState::waiting) > 0) relay.deliver_due();
  }

  Inbox inbox_;
  Outbox outbox_;
};

INSTANTIATE_TEST_SUITE_P(Stores, Relayed, testing::Values("sqlite", "postgres"),
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
    paying()(tx);
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

TEST_P(Relayed, S18_what_cannot_be_sent_fails_the_transaction_and_says_why) {
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

TEST_P(Relayed, V23_T59_poison_dies_with_its_history_and_what_is_behind_it_goes_on) {
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

TEST_P(Relayed, S18_what_is_refused_for_good_dies_at_once_and_can_be_discarded_with_a_reason) {
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

TEST_P(Relayed, T61_S18_messages_of_one_aggregate_leave_in_order_also_where_the_first_fails) {
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

TEST_P(Relayed, T62_a_relay_that_came_too_late_notes_nothing_and_its_message_is_told_by_its_id) {
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
  while (!is_out) std::this_thread::yield();
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
  // Redriving obeys the same, until somebody has looked.
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

TEST_P(Relayed, S16_S18_with_a_lookup_what_arrived_is_found_and_what_did_not_is_sent) {
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

TEST_P(Relayed, S18_pages_of_messages_and_what_was_delivered_long_ago_is_reaped) {
  for (int i = 0; i < 5; ++i) send(message(fmt::format("m{}", i)));
  auto page = *outbox_.list({.limit = 3});
  ASSERT_EQ(page.size(), 3);
  page = *outbox_.list({.after = page.back().seq, .limit = 3});
  ASSERT_EQ(page.size(), 2);
  EXPECT_TRUE(outbox_.list({.state = MessageState::dead})->empty());
  EXPECT_TRUE(outbox_.list({.destination = "others"})->empty());
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
TEST_P(Relayed, S16_where_nothing_is_declared_only_what_was_noted_counts_as_sent) {
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

TEST_P(Relayed, T61_T59_a_redriven_message_waits_for_a_later_one_of_its_aggregate_on_its_way) {
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

using RelayedOnPostgres = Relayed;
INSTANTIATE_TEST_SUITE_P(Stores, RelayedOnPostgres, testing::Values("postgres"),
                         [](const auto& kind) { return kind.param; });

// Two transactions at once, the one with the lower number committed last.
TEST_P(RelayedOnPostgres, T60_a_message_that_is_committed_late_is_delivered_all_the_same) {
  std::promise<void> enqueued;
  std::promise<void> go;
  std::jthread late([&] {
    guard_->serve_in_transaction(payment("late"), [&](Transaction& tx) -> Outcome {
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
TEST_P(RelayedOnPostgres, T60_T61_of_one_aggregate_the_later_number_is_never_seen_first) {
  std::promise<void> enqueued;
  std::promise<void> go;
  std::jthread first([&] {
    guard_->serve_in_transaction(payment("first"), [&](Transaction& tx) -> Outcome {
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
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        " AND classid = 1229210958");
    return std::get<std::int64_t>(rows->at(0).at(0)) > 0;
  };
  while (!waits()) std::this_thread::yield();
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
