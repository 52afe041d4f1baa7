#pragma once

#include "store_conformance/asking.hpp"
#include "support/cutting_proxy.hpp"

#include <idem/fingerprint.hpp>

#include <atomic>
#include <future>
#include <latch>
#include <set>

/// Parts of the fault tests of several stores.
namespace idem::test {

/// Two duplicates of each of 20 keys, and the reply to a message with `part` lost by the proxy on
/// the way to the store: one of the two executes.
inline void lose_replies_to_duplicates(Store& store, CuttingProxy& proxy, const std::string& part) {
  for (int round = 1; round <= 20; ++round) {
    proxy.lose_answer_to(part);
    std::promise<std::expected<ReserveOutcome, StoreError>> replies[2];
    for (int i = 0; i < 2; ++i) {
      ask(store, a_reserve_in(store, round, 1 + i),
          [&replies, i](auto outcome) { replies[i].set_value(std::move(outcome)); });
    }
    int executed = 0;
    for (int i = 0; i < 2; ++i) {
      const auto outcome = replies[i].get_future().get();
      ASSERT_TRUE(outcome.has_value()) << outcome.error().detail;
      if (const auto* execute = std::get_if<Execute>(&*outcome)) {
        ++executed;
        EXPECT_EQ(execute->attempt.token, token(1 + i));
        const auto record = try_ask(store, Find{key(round)});
        ASSERT_TRUE(record && *record);
        EXPECT_EQ((*record)->attempt, execute->attempt);
      } else {
        EXPECT_TRUE(is<InProgress>(*outcome)) << describe(*outcome);
      }
    }
    EXPECT_EQ(executed, 1) << "round " << round;
    EXPECT_EQ(proxy.lost(), round);
  }
}

/// 20 completions, and the reply to a message with `part` lost by the proxy on the way to the
/// store: each is applied, and reported as one of `verdicts`.
inline void lose_replies_to_completions(Store& store, CuttingProxy& proxy, const std::string& part,
                                        const std::set<Verdict>& verdicts) {
  for (int round = 1; round <= 20; ++round) {
    const Execute attempt = run(store, round);
    proxy.lose_answer_to(part);
    const auto reply = try_ask(store, a_complete(attempt));
    ASSERT_TRUE(reply.has_value()) << reply.error().detail;
    EXPECT_TRUE(verdicts.contains(reply->verdict)) << "round " << round;
    EXPECT_EQ(reply->state, State::completed);
    EXPECT_EQ(proxy.lost(), round);
  }
}

/// Keys of their own, each reserved and completed without waiting for the others.
class OtherKeys {
 public:
  explicit OtherKeys(int count) : open_(count) {}

  void start_one(Store& store) {
    Reserve verb = a_reserve_in(store, 2);
    random_bytes(verb.id.bytes);
    ask(store, verb, [this, &store](auto outcome) {
      if (!outcome || !is<Execute>(*outcome)) return open_.count_down();
      ask(store, a_complete(std::get<Execute>(*outcome)), [this](auto reply) {
        if (reply && reply->verdict == Verdict::done) ++completed_;
        open_.count_down();
      });
    });
  }
  /// Waits until as many as were announced have ended.
  int completed() {
    open_.wait();
    return completed_;
  }

 private:
  std::latch open_;
  std::atomic<int> completed_{0};
};

}  // namespace idem::test
