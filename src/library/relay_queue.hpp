#pragma once

#include <idem/message.hpp>
#include <idem/transaction.hpp>

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace idem::library {

/// How often a message was claimed. Notes of any claim but the last are refused.
using ClaimNumber = std::int64_t;

/// A claimed message, and the history of its earlier attempts.
struct ClaimedMessage {
  std::int64_t seq = 0;
  ClaimNumber claim = 0;
  std::string id{};
  RecordId operation{};
  Message message{};
  StoreTime created_at{};
  int attempt = 1;
  /// Since then, at the latest, no earlier attempt is in flight; none: no attempt can have arrived.
  std::optional<MonotonicTime> no_call_in_flight_since{};
  MonotonicTime repeat_until{};  ///< The end of the destination's window, at the earliest.
};

/// The result of a claim.
enum class Noted : std::uint8_t {
  delivered,
  put_off,     ///< Failed; due again after the delay.
  unseen,      ///< Not sent, and the lookup failed; due again after the delay.
  given_back,  ///< Not tried; due again after the delay.
  dead,
};
struct Note {
  Noted how = Noted::put_off;
  std::string reference{};
  std::string why{};
  Millis delay{};
  bool may_have_arrived = false;
};

/// One destination's messages in the outbox. Blocks; for one thread.
class RelayQueue {
 public:
  RelayQueue(Transactions& transactions, std::string destination)
      : transactions_(transactions), destination_(std::move(destination)) {}

  /// Claims messages, durably, in the order of their numbers. `repeats`: the destination's window;
  /// `is_noted`: each is noted before it is sent.
  std::expected<std::vector<ClaimedMessage>, std::string> claim(std::size_t most, Millis lease,
                                                                Millis repeats, bool is_noted);
  /// Notes that the message may be on the wire from here on. False: it must not be sent.
  std::expected<bool, std::string> note_sending(const ClaimedMessage& claimed);
  /// Notes a result. False: a later claim exists, and nothing was noted (T62).
  std::expected<bool, std::string> note(const ClaimedMessage& claimed, const Note& note);
  /// Drops delivered and discarded messages after their retention; returns their number.
  std::expected<std::size_t, std::string> reap(std::size_t most, Millis retention);

 private:
  Transactions& transactions_;
  std::string destination_;
};

}  // namespace idem::library
