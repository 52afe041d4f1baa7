#include "admin/outbox_orders.hpp"

#include "admin/order_reading.hpp"
#include "admin/query.hpp"
#include "core/bytes/hex.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <array>
#include <charconv>
#include <set>

namespace idem::admin {
namespace {

Read<std::string> read_optional(const Value& object, std::string_view name) {
  if (object.find(name) == nullptr) return std::string();
  return read_text(object, name, limits::message_name_bytes_max);
}

Read<bool> read_flag(const Value& object, std::string_view name) {
  const auto* const value = object.find(name);
  if (value == nullptr) return false;
  const auto* const flag = std::get_if<bool>(&value->is);
  if (flag == nullptr) return wrong("/" + std::string(name), "must be true or false");
  return *flag;
}

/// A number above 0, whole or not.
Read<double> read_number(const Value& object, std::string_view name, double otherwise,
                         double most) {
  const auto* const value = object.find(name);
  if (value == nullptr) return otherwise;
  double number = 0;
  if (const auto* const whole = std::get_if<std::int64_t>(&value->is)) {
    number = static_cast<double>(*whole);
  } else if (const auto* const real = std::get_if<double>(&value->is)) {
    number = *real;
  }
  if (number > 0 && number <= most) return number;
  return wrong("/" + std::string(name), "must be a number above 0, and " +
                                            std::to_string(static_cast<long>(most)) + " at most");
}

/// An order about all dead letters must say so: `"all": true`.
Read<DeadLetters> read_which(const Value& object) {
  DeadLetters which;
  auto id = read_optional(object, "id");
  auto destination = read_optional(object, "destination");
  auto type = read_optional(object, "type");
  const auto all = read_flag(object, "all");
  const auto limit = read_number(object, "limit", static_cast<double>(limits::list_page_max),
                                 static_cast<double>(limits::list_page_max));
  for (const auto* const read : {&id, &destination, &type}) {
    if (!*read) return std::unexpected(read->error());
    if ((*read)->contains('\0')) return wrong("body", "has a text with a zero byte in it");
  }
  if (!all) return std::unexpected(all.error());
  if (!limit) return std::unexpected(limit.error());
  if (!id->empty() && !parse_handle(*id)) return wrong("/id", "must have 32 hexadecimal digits");
  if (id->empty() && destination->empty() && type->empty() && !*all) {
    return wrong("body", "names no message; give id, destination or type, or all: true");
  }
  const bool is_part = !destination->empty() || !type->empty();
  if (*all && (!id->empty() || is_part)) {
    return wrong("/all", "means every dead letter; leave it out for those of " +
                             std::string(id->empty() ? "a destination or type" : "one id"));
  }
  if (!id->empty() && is_part) {
    return wrong("/id", "names one dead letter; leave out destination and type");
  }
  which.id = std::move(*id);
  which.destination = std::move(*destination);
  which.type = std::move(*type);
  which.limit = static_cast<std::size_t>(*limit);
  return which;
}

/// The members of every order about dead letters that follow its own.
template <class Order>
Read<Order> with_reason(const Value& object, Order order) {
  const auto dry_run = read_flag(object, "dry_run");
  if (!dry_run) return std::unexpected(dry_run.error());
  auto reason = read_reason(object);
  if (!reason) return std::unexpected(reason.error());
  order.dry_run = *dry_run;
  order.reason = std::move(*reason);
  return order;
}

}  // namespace

std::expected<Redrive, std::string> parse_redrive(std::string_view body) {
  const auto object = read_object(body, {"id", "destination", "type", "all", "limit", "rate",
                                         "nothing_there", "dry_run", "reason", "by"});
  if (!object) return std::unexpected(object.error());
  Redrive order;
  auto which = read_which(*object);
  if (!which) return std::unexpected(which.error());
  const auto rate = read_number(*object, "rate", order.rate, limits::redrive_rate_max);
  if (!rate) return std::unexpected(rate.error());
  const auto nothing_there = read_flag(*object, "nothing_there");
  if (!nothing_there) return std::unexpected(nothing_there.error());
  order.which = std::move(*which);
  order.rate = *rate;
  order.nothing_there = *nothing_there;
  return with_reason(*object, std::move(order));
}

std::expected<Discard, std::string> parse_discard(std::string_view body) {
  const auto object =
      read_object(body, {"id", "destination", "type", "all", "limit", "dry_run", "reason", "by"});
  if (!object) return std::unexpected(object.error());
  Discard order;
  auto which = read_which(*object);
  if (!which) return std::unexpected(which.error());
  order.which = std::move(*which);
  return with_reason(*object, std::move(order));
}

std::expected<MessageFilter, std::string> parse_messages_query(std::string_view query,
                                                               bool accepts_state) {
  static constexpr std::array<std::string_view, 5> known{"destination", "operation_ref", "limit",
                                                         "cursor", "state"};
  const auto pairs = parse_query(query, std::span(known).first(accepts_state ? 5 : 4));
  if (!pairs) return std::unexpected(pairs.error());
  MessageFilter filter{.limit = limits::list_page_default};
  std::set<std::string> seen;
  for (const auto& [name, value] : *pairs) {
    if (!seen.insert(name).second) return std::unexpected(name + ": appears twice");
    if (value.empty()) return std::unexpected(name + ": is empty; leave it out instead");
    if (name == "destination") filter.destination = value;
    if (name == "operation_ref") {
      filter.operation = parse_handle(value);
      if (!filter.operation) {
        return std::unexpected("operation_ref: must be 32 hexadecimal digits");
      }
    }
    if (name == "state") {
      filter.state = message_state(value);
      if (!filter.state) {
        return std::unexpected("state: must be waiting, delivered, dead or discarded");
      }
    }
    if (name != "limit" && name != "cursor") continue;
    std::int64_t number = 0;
    const char* const end = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), end, number);
    const bool is_number = parsed.ec == std::errc{} && parsed.ptr == end && number >= 0;
    const auto most = static_cast<std::int64_t>(limits::list_page_max);
    if (name == "cursor") {
      if (!is_number) {
        return std::unexpected("cursor: must be the \"next\" of an earlier answer");
      }
      filter.after = number;
    } else if (!is_number || number < 1 || number > most) {
      return std::unexpected("limit: must be a whole number from 1 to 1000");
    } else {
      filter.limit = static_cast<std::size_t>(number);
    }
  }
  return filter;
}

}  // namespace idem::admin
