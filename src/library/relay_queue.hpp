#pragma once

#include <idem/relay.hpp>
#include <idem/transaction.hpp>

#include <expected>
#include <optional>
#include <string>
#include <vector>

namespace idem::library {

/// A message that was claimed, and what is known of its attempts before.
struct ClaimedMessage {
  std::int64_t seq = 0;
  std::int64_t fence = 0;
  std::string id{};
  RecordId operation{};
  Message message{};
  StoreTime created_at{};
  int attempt = 1;
  /// From when on no earlier attempt can be under way, at the latest; none: none can have arrived.
  std::optional<MonotonicTime> no_call_in_flight_since{};
  MonotonicTime repeat_until{};  ///< Until when it may be repeated, at the earliest.
};

/// What came of a claim.
enum class Noted : std::uint8_t {
  delivered,
  put_off,     ///< Failed; again after the delay.
  unseen,      ///< Nothing was sent, and it could not be looked up; again after the delay.
  given_back,  ///< Not tried; not before the delay.
  dead,
};
struct Note {
  Noted how = Noted::put_off;
  std::string reference{};
  std::string why{};
  Millis delay{};
  bool may_have_arrived = false;
};

/// The outbox as one destination's relay sees it. Blocks; for one thread.
class RelayQueue {
 public:
  RelayQueue(Transactions& transactions, std::string destination)
      : transactions_(transactions), destination_(std::move(destination)) {}

  /// In the order of their numbers. `repeats`: the destination's window; `is_noted`: each is noted
  /// before it is sent. Durable when it answers.
  std::expected<std::vector<ClaimedMessage>, std::string> claim(std::size_t most, Millis lease,
                                                                Millis repeats, bool is_noted);
  /// Where each is noted: from here on it may be on the wire. False: nothing may be sent.
  std::expected<bool, std::string> note_sending(const ClaimedMessage& claimed);
  /// False: the claim is not the last one any more, and nothing was noted (T62).
  std::expected<bool, std::string> note(const ClaimedMessage& claimed, const Note& note);
  std::expected<std::size_t, std::string> reap(std::size_t most, Millis retention);

 private:
  Transactions& transactions_;
  std::string destination_;
};

}  // namespace idem::library
