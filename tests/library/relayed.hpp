#pragma once

#include <idem/outbox.hpp>
#include <idem/relay.hpp>

#include <algorithm>
#include <map>
#include <mutex>

#include "library/guarded.hpp"
#include "library/relay_queue.hpp"

namespace idem::test {

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

}  // namespace idem::test
