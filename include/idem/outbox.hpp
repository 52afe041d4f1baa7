#pragma once

#include <idem/message.hpp>
#include <idem/transaction.hpp>

#include <expected>
#include <optional>
#include <string>
#include <vector>

/// @file
/// Messages for operators: list, count, redrive, discard (protocol.md §18).
namespace idem::inline v0_1 {

/// Dead messages are kept until an operator redrives or discards them.
enum class MessageState : std::uint8_t { waiting, delivered, dead, discarded };
/// "waiting", as in SQL, logs and the API.
std::string_view name_of(MessageState state) noexcept;
/// The state of such a name; none for any other text.
[[nodiscard]] std::optional<MessageState> message_state(std::string_view name) noexcept;

/// A message in the outbox.
struct StoredMessage {
  std::int64_t seq = 0;  ///< Grows; in commit order within one aggregate. Pages go on behind it.
  std::string id{};
  RecordId operation{};
  Message message{};  ///< In a list: without payload and content type.
  MessageState state = MessageState::waiting;
  StoreTime created_at{};
  StoreTime due_at{};             ///< Waiting: not sent before; in flight: the claim's end.
  int attempts = 0;               ///< Since it was enqueued or redriven.
  bool in_flight = false;         ///< Claimed, and without a result so far: it may be on the wire.
  bool may_have_arrived = false;  ///< An attempt ended without a result.
  std::string reference{};        ///< The receiver's name for it.
  std::string last_error{};
  std::optional<StoreTime> ended_at{};
  std::string history{};  ///< Only from find(): a JSON array of attempts and decisions.
};

/// Which messages, and how many.
struct MessageFilter {
  std::optional<MessageState> state{};
  std::string destination{};            ///< Empty: any.
  std::optional<RecordId> operation{};  ///< The record that they were sent with; none: any.
  std::int64_t after = 0;               ///< A StoredMessage::seq; 0: from the first.
  std::size_t limit = 100;
};

/// Selects dead letters; an empty member matches all.
struct DeadLetters {
  std::string destination{};
  std::string id{};
  std::string type{};
  std::size_t limit = 1'000;
};
/// An order to send dead letters once more.
struct Redrive {
  DeadLetters which{};
  /// Messages a second, from now on: each is due that much later than the one before. 0: all at
  /// once.
  double rate = 10;
  /// The operator has checked that the messages which may have arrived did not arrive.
  bool nothing_there = false;
  bool dry_run = false;
  std::string reason{};
};
/// An order to give up dead letters.
struct Discard {
  DeadLetters which{};
  bool dry_run = false;
  std::string reason{};
};
/// An order's result for one message.
struct Ordered {
  std::string id{};
  std::string destination{};
  std::string type{};
  /// "redriven", "discarded", or "may_have_arrived": refused, because its destination would not
  /// recognise a repeat.
  std::string verdict{};
  bool operator==(const Ordered&) const = default;
};
/// The number of a destination's messages in one state.
struct MessageCount {
  std::string destination{};
  MessageState state = MessageState::waiting;
  std::uint64_t messages = 0;
  Millis oldest_age{};
};

/// An operator's access to the outbox. Blocks; safe from any thread. Errors are the database's
/// texts, for people.
class Outbox {
 public:
  /// `transactions`: Store::transactions(), not null; must outlive this.
  explicit Outbox(Transactions& transactions) : transactions_(&transactions) {}

  /// The result, or why there is none.
  template <class T>
  using Result = std::expected<T, std::string>;

  /// One page of messages, oldest first.
  [[nodiscard]] Result<std::vector<StoredMessage>> list(const MessageFilter& filter);
  /// One message with its history; none if no message has this id.
  [[nodiscard]] Result<std::optional<StoredMessage>> find(const std::string& id);
  /// Counts waiting messages and dead letters; of the others there may be too many to count.
  [[nodiscard]] Result<std::vector<MessageCount>> count();
  /// Makes a waiting message due now. False: no message of this id waits, or it is in flight.
  [[nodiscard]] Result<bool> hasten(const std::string& id);
  /// Sends dead letters once more. Skips messages that another order is changing at this moment.
  [[nodiscard]] Result<std::vector<Ordered>> redrive(const Redrive& order);
  /// Gives up dead letters. They stay readable until they are reaped, as delivered messages do.
  [[nodiscard]] Result<std::vector<Ordered>> discard(const Discard& order);

 private:
  Transactions* transactions_;
};

}  // namespace idem::inline v0_1
