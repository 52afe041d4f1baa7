#include "core/bytes/hex.hpp"
#include "library/own_values.hpp"
#include "store/internal_sql.hpp"

#include <idem/outbox.hpp>

#include <algorithm>
#include <array>

namespace idem::inline v0_1 {
namespace {

using library::is_null;
using library::moment_of;
using library::number_of;
using library::text_of;
using library::values_of;

constexpr std::array<std::string_view, 4> state_names{"waiting", "delivered", "dead", "discarded"};

bool is_id(const std::string& id) { return parse_handle(id).has_value(); }

StoredMessage message_of(const SqlRow& row) {
  StoredMessage one;
  one.seq = number_of(row.at(0));
  one.id = text_of(row.at(1));
  one.operation = parse_handle(text_of(row.at(2))).value_or(RecordId{});
  one.message.destination = text_of(row.at(3));
  one.message.type = text_of(row.at(4));
  one.message.aggregate_type = text_of(row.at(5));
  one.message.aggregate_id = text_of(row.at(6));
  one.state = message_state(text_of(row.at(7))).value_or(MessageState::waiting);
  one.created_at = moment_of(row.at(8));
  one.due_at = moment_of(row.at(9));
  one.attempts = static_cast<int>(number_of(row.at(10)));
  one.in_flight = number_of(row.at(11)) != 0;
  one.may_have_arrived = number_of(row.at(12)) != 0;
  one.reference = text_of(row.at(13));
  one.last_error = text_of(row.at(14));
  if (!is_null(row.at(15))) one.ended_at = moment_of(row.at(15));
  one.message.content_type.clear();
  if (row.size() > 18) {
    one.message.content_type = text_of(row.at(16));
    one.message.payload = text_of(row.at(17));
    one.history = text_of(row.at(18));
  }
  return one;
}

MessageCount count_of(const SqlRow& row) {
  return {text_of(row.at(0)), message_state(text_of(row.at(1))).value_or(MessageState::waiting),
          static_cast<std::uint64_t>(number_of(row.at(2))), Millis(number_of(row.at(3)))};
}

Ordered ordered_of(const SqlRow& row) {
  return {text_of(row.at(0)), text_of(row.at(1)), text_of(row.at(2)), text_of(row.at(3))};
}

SqlValue any_or(const std::string& text) {
  return text.empty() ? SqlValue(std::monostate{}) : SqlValue(text);
}

/// Runs an order; `rest`: the statement's parameters after those that select the dead letters.
template <class... Rest>
Outbox::Result<std::vector<Ordered>> run_order(Transactions& transactions,
                                               InternalStatement statement,
                                               const DeadLetters& which, const Rest&... rest) {
  if (!which.id.empty() && !is_id(which.id)) return std::vector<Ordered>{};
  const auto most = static_cast<std::int64_t>(std::min<std::size_t>(which.limit, 1'000'000));
  return values_of(InternalSql::run(transactions, statement,
                                    {any_or(which.destination), any_or(which.id),
                                     any_or(which.type), most, SqlValue(rest)...}),
                   &ordered_of);
}

}  // namespace

std::string_view name_of(MessageState state) noexcept {
  return state_names[static_cast<std::size_t>(state)];
}

std::optional<MessageState> message_state(std::string_view name) noexcept {
  const auto found = std::ranges::find(state_names, name);
  if (found == state_names.end()) return std::nullopt;
  return static_cast<MessageState>(found - state_names.begin());
}

Outbox::Result<std::vector<StoredMessage>> Outbox::list(const MessageFilter& filter) {
  const std::string state(filter.state ? name_of(*filter.state) : "");
  const auto most = static_cast<std::int64_t>(filter.limit);
  if (!filter.operation) {
    return values_of(InternalSql::run(*transactions_, InternalStatement::list_messages,
                                      {state, filter.destination, filter.after, most}),
                     &message_of);
  }
  return values_of(InternalSql::run(*transactions_, InternalStatement::messages_of_record,
                                    {to_hex(filter.operation->bytes), state, filter.destination,
                                     filter.after, most}),
                   &message_of);
}

Outbox::Result<std::optional<StoredMessage>> Outbox::find(const std::string& id) {
  if (!is_id(id)) return std::nullopt;
  const auto rows = InternalSql::run(*transactions_, InternalStatement::find_message, {id});
  if (!rows) return std::unexpected(rows.error());
  if (rows->empty()) return std::nullopt;
  return message_of(rows->front());
}

Outbox::Result<std::vector<MessageCount>> Outbox::count() {
  return values_of(InternalSql::run(*transactions_, InternalStatement::count_messages, {}),
                   &count_of);
}

Outbox::Result<bool> Outbox::hasten(const std::string& id) {
  if (!is_id(id)) return false;
  return library::has_row(
      InternalSql::run(*transactions_, InternalStatement::hasten_message, {id}));
}

Outbox::Result<std::vector<Ordered>> Outbox::redrive(const Redrive& order) {
  constexpr double slowest = 1e-3;
  const auto spacing =
      order.rate > 0 ? static_cast<std::int64_t>(1'000 / std::max(order.rate, slowest)) : 0;
  return run_order(*transactions_,
                   order.dry_run ? InternalStatement::try_redrive : InternalStatement::redrive,
                   order.which, spacing, std::int64_t{order.nothing_there ? 1 : 0}, order.reason);
}

Outbox::Result<std::vector<Ordered>> Outbox::discard(const Discard& order) {
  return run_order(*transactions_,
                   order.dry_run ? InternalStatement::try_discard : InternalStatement::discard,
                   order.which, order.reason);
}

}  // namespace idem::inline v0_1
