#pragma once

#include <idem/message.hpp>
#include <idem/transaction.hpp>

#include <expected>
#include <optional>
#include <string>
#include <vector>

/// @file
/// What operators see of messages and do about them (protocol.md §18).
namespace idem::inline v0_1 {

/// Dead ones are kept until somebody redrives or discards them.
enum class MessageState : std::uint8_t { waiting, delivered, dead, discarded };
/// "waiting", as in SQL, logs and the API.
std::string_view name_of(MessageState state) noexcept;
/// Of such a name.
std::optional<MessageState> message_state(std::string_view name) noexcept;

/// A message as it lies in the outbox.
struct StoredMessage {
  std::int64_t seq = 0;  ///< Grows; a page goes on behind it. Of one aggregate, in commit order.
  std::string id{};
  RecordId operation{};
  Message message{};  ///< In a list without its payload and content type.
  MessageState state = MessageState::waiting;
  StoreTime created_at{};
  StoreTime due_at{};             ///< Waiting: not before; in flight: when the claim ends.
  int attempts = 0;               ///< Since it was enqueued or redriven.
  bool in_flight = false;         ///< Claimed, and nothing was noted since: it may be on the wire.
  bool may_have_arrived = false;  ///< An attempt ended without a word of it.
  std::string reference{};        ///< What the receiver calls it.
  std::string last_error{};
  std::optional<StoreTime> ended_at{};
  std::string history{};  ///< Of one only: a JSON array of what was tried and decided.
};

/// Which messages, and how many.
struct MessageFilter {
  std::optional<MessageState> state{};
  std::string destination{};  ///< Empty: any.
  std::int64_t after = 0;     ///< A StoredMessage::seq; 0: from the first.
  std::size_t limit = 100;
};

/// Which dead letters an order is about; what is empty is any.
struct DeadLetters {
  std::string destination{};
  std::string id{};
  std::string type{};
  std::size_t limit = 1'000;
};
/// An order to send dead letters once more.
struct Redrive {
  DeadLetters which{};
  /// So many a second, from now on; each is due that much later than the one before. 0: all at
  /// once.
  double rate = 10;
  /// Somebody has looked, and the messages that may have arrived have not.
  bool nothing_there = false;
  bool dry_run = false;
  std::string reason{};
};
/// An order to give dead letters up.
struct Discard {
  DeadLetters which{};
  bool dry_run = false;
  std::string reason{};
};
/// What an order came to for one message.
struct Ordered {
  std::string id{};
  std::string destination{};
  std::string type{};
  /// "redriven", "discarded", or "may_have_arrived": refused, as its destination would not tell the
  /// repeat.
  std::string verdict{};
  bool operator==(const Ordered&) const = default;
};
/// How many of a destination are in a state.
struct MessageCount {
  std::string destination{};
  MessageState state = MessageState::waiting;
  std::uint64_t messages = 0;
  Millis oldest_age{};
};

/// Blocks; safe from any thread. Errors are the database's, for people.
class Outbox {
 public:
  /// Of a store that has them; it must outlive this.
  explicit Outbox(Transactions& transactions) : transactions_(&transactions) {}

  /// Or why not.
  template <class T>
  using Result = std::expected<T, std::string>;

  /// A page, oldest first.
  [[nodiscard]] Result<std::vector<StoredMessage>> list(const MessageFilter& filter);
  /// Everything about one, with its history; none: there is none of this id.
  [[nodiscard]] Result<std::optional<StoredMessage>> find(const std::string& id);
  /// Of those that wait and of the dead letters: of what is over there may be many.
  [[nodiscard]] Result<std::vector<MessageCount>> count();
  /// One that was put off is due now. False: none of this id waits, or it is on its way.
  [[nodiscard]] Result<bool> hasten(const std::string& id);
  /// Messages that another order is about at this moment are left out.
  [[nodiscard]] Result<std::vector<Ordered>> redrive(const Redrive& order);
  /// They stay for who asks until they are reaped, as those that were delivered do.
  [[nodiscard]] Result<std::vector<Ordered>> discard(const Discard& order);

 private:
  Transactions* transactions_;
};

}  // namespace idem::inline v0_1
