#pragma once

#include <idem/foreign_call.hpp>
#include <idem/guard.hpp>
#include <idem/message.hpp>
#include <idem/worker_limits.hpp>

#include <memory>
#include <vector>

/// @file
/// Delivers what transactions enqueued (protocol.md §18).
namespace idem::inline v0_1 {

/// One message on its way.
struct Delivery {
  const Message& message;
  std::string id;   ///< The same at every attempt: the receiver tells a repeat by it.
  std::string key;  ///< derived_key() of the message, where the receiver wants an idempotency key.
  RecordId operation;    ///< The record whose work sends it.
  StoreTime created_at;  ///< By the store's clock.
  int attempt = 1;
  Millis timeout{};  ///< Must be over by then, whatever happens.
};

/// Where messages go.
struct Destination {
  /// As messages name it.
  std::string name{};
  /// Sends it, once. Blocks for `timeout` at most.
  std::function<CallEnd(const Delivery&)> send{};
  Repetition<Delivery> repetition{};  ///< Without any, what may have arrived is never sent again.
  Millis timeout = limits::delivery_timeout_default;  ///< For one delivery.
  /// After so many, the message is a dead letter.
  int attempts_max = limits::delivery_attempts_default;
  /// Pauses between attempts: from half to all of it, doubled each time, up to the longest.
  Millis retry_first = limits::delivery_retry_first;
  /// See `retry_first`.
  Millis retry_max = limits::delivery_retry_max;
};

/// How a relay works.
struct RelayOptions {
  /// How often it looks for messages; 0: only deliver_due() does.
  Millis interval = limits::relay_interval;
  /// Messages claimed at once, and for how long. Each is sent only while the claim covers it.
  std::size_t batch = limits::relay_batch;
  Millis lease = limits::lease_default;
  /// How long delivered and discarded messages are kept.
  Millis retention = limits::message_retention_default;
};

/// Claims messages, a batch for each destination, sends them, and notes what came of it. Each is
/// delivered at least once, and under one claim at a time; of each aggregate in order, one after
/// the other. One whose delivery is in doubt is sent again only as its Destination's Repetition
/// allows. What cannot be delivered becomes a dead letter, with its history (<idem/outbox.hpp>),
/// and those behind it go on.
///
/// A destination that fails again and again is left alone for a while, and then tried with one
/// message. Any number of relays may run, in this process and in others.
class Relay {
 public:
  /// A thread for each destination, from now on; must be gone before the engine. Needs a store with
  /// transactions(); aborts without, on a name that is empty or there twice, and on a lease that
  /// does not cover one delivery, after it has said what to write instead.
  Relay(Engine& engine, std::vector<Destination> destinations, RelayOptions options = {});
  /// Where there are no guards: `store` outlives it.
  /// A null `log`: warnings and errors go to stderr.
  Relay(Store& store, LogSink log, std::vector<Destination> destinations,
        RelayOptions options = {});
  /// Waits for the deliveries under way.
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// One turn of every destination, on this thread. How many messages it claimed.
  std::size_t deliver_due();

 private:
  class Line;
  std::shared_ptr<void> at_work_{};  ///< Known to the engine; goes after the lines.
  std::vector<std::unique_ptr<Line>> lines_;
};

}  // namespace idem::inline v0_1
