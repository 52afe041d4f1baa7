#pragma once

#include <idem/foreign_call.hpp>
#include <idem/guard.hpp>
#include <idem/message.hpp>
#include <idem/worker_limits.hpp>

#include <memory>
#include <vector>

/// @file
/// Delivers the messages that transactions enqueued (protocol.md §18).
namespace idem::inline v0_1 {

/// One message on its way.
struct Delivery {
  const Message& message;
  std::string id;   ///< The same at every attempt: the receiver recognises a repeat by it.
  std::string key;  ///< derived_key() of the message, for receivers that want an idempotency key.
  RecordId operation;    ///< The record whose work enqueued it.
  StoreTime created_at;  ///< By the store's clock.
  int attempt = 1;
  Millis timeout{};  ///< The delivery must end within it, in any case.
};

/// Where messages go.
struct Destination {
  /// Its name in Message::destination.
  std::string name{};
  /// Sends one message, once. Blocks for `timeout` at most.
  std::function<CallEnd(const Delivery&)> send{};
  Repetition<Delivery> repetition{};  ///< Empty: what may have arrived is never sent again.
  Millis timeout = limits::delivery_timeout_default;  ///< For one delivery.
  /// After so many attempts the message becomes a dead letter.
  int attempts_max = limits::delivery_attempts_default;
  /// The first pause between attempts: half to all of it. It doubles with each, up to `retry_max`.
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

/// Claims messages, a batch for each destination, sends them, and records the results. It delivers
/// each at least once, under one claim at a time, and those of one aggregate in order, one after
/// the other. It repeats a delivery in doubt only as the Destination's Repetition allows. A message
/// that cannot be delivered becomes a dead letter with its history (<idem/outbox.hpp>), and those
/// behind it go on.
///
/// The relay pauses a destination that fails again and again, and then tries it with one message.
/// Any number of relays may run, in this process and in others.
class Relay {
 public:
  /// Starts a thread for each destination. Destroy the relay before the engine. Needs a store with
  /// transactions(). Without it, on an empty or repeated name, and on a lease that does not cover
  /// one delivery, it prints what to write instead, and aborts.
  Relay(Engine& engine, std::vector<Destination> destinations, RelayOptions options = {});
  /// The same without an engine. `store` must outlive the relay. A null `log`: warnings and errors
  /// go to stderr.
  Relay(Store& store, LogSink log, std::vector<Destination> destinations,
        RelayOptions options = {});
  /// Waits for the deliveries under way.
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// Runs one turn of every destination on this thread. Returns the number of claimed messages.
  std::size_t deliver_due();

 private:
  class Line;
  std::shared_ptr<void> at_work_{};  ///< Registered with the engine; destroyed after the lines.
  std::vector<std::unique_ptr<Line>> lines_;
};

}  // namespace idem::inline v0_1
