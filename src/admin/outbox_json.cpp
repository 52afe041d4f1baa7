#include "admin/outbox_json.hpp"

#include "admin/json_members.hpp"
#include "core/bytes/rfc3339.hpp"
#include "json/value.hpp"
#include "json/writer.hpp"

namespace idem::admin {
namespace {

using json::Writer;

void write_summary(Writer& out, const StoredMessage& one) {
  out.member("id", one.id);
  out.member("destination", one.message.destination);
  out.member("type", one.message.type);
  out.member("state", name_of(one.state));
  out.member("operation_ref", to_hex(one.operation.bytes));
  out.member("aggregate_type", one.message.aggregate_type);
  out.member("aggregate_id", one.message.aggregate_id);
  write_moment(out, "created_at", one.created_at);
  const bool waits = one.state == MessageState::waiting;
  write_moment(out, "due_at", waits ? std::optional(one.due_at) : std::nullopt);
  write_moment(out, "ended_at", one.ended_at);
  out.member("attempts", one.attempts);
  out.flag("in_flight", one.in_flight);
  out.flag("may_have_arrived", one.may_have_arrived);
  out.member("reference", one.reference);
  out.member("last_error", one.last_error);
}

/// The history as the store wrote it: each entry has at and how, some have attempt and why.
void write_history(Writer& out, const std::string& history) {
  out.name("history");
  out.begin_array();
  const auto parsed = json::parse(history);
  const auto* const entries = parsed ? std::get_if<json::Array>(&parsed->is) : nullptr;
  for (const json::Value& entry : entries != nullptr ? *entries : json::Array{}) {
    out.begin_object();
    if (const auto* const at = entry.find("at")) {
      const auto* const ms = std::get_if<std::int64_t>(&at->is);
      if (ms != nullptr) out.member("at", to_rfc3339(StoreTime(Millis(*ms))));
    }
    if (const auto* const attempt = entry.find("attempt")) {
      const auto* const number = std::get_if<std::int64_t>(&attempt->is);
      if (number != nullptr) out.member("attempt", *number);
    }
    for (const auto* const name : {"how", "why"}) {
      const auto* const value = entry.find(name);
      const auto* const text = value != nullptr ? std::get_if<std::string>(&value->is) : nullptr;
      if (text != nullptr) out.member(name, *text);
    }
    out.end_object();
  }
  out.end_array();
}

}  // namespace

std::string messages_page(std::span<const StoredMessage> messages,
                          const std::optional<std::int64_t>& next) {
  Writer out;
  out.begin_object();
  out.name("messages");
  out.begin_array();
  for (const StoredMessage& one : messages) {
    out.begin_object();
    write_summary(out, one);
    out.end_object();
  }
  out.end_array();
  write_text_or_null(out, "next", next ? std::to_string(*next) : "");
  out.end_object();
  return out.take();
}

std::string message_page(const StoredMessage& message, Bodies bodies) {
  Writer out;
  out.begin_object();
  write_summary(out, message);
  out.member("content_type", message.message.content_type);
  out.name("payload");
  if (bodies == Bodies::withheld) {
    out.null();
  } else {
    out.text(message.message.payload);
  }
  write_history(out, message.history);
  out.end_object();
  return out.take();
}

std::string ordered_page(std::span<const Ordered> ordered, bool dry_run) {
  Writer out;
  out.begin_object();
  out.flag("dry_run", dry_run);
  out.name("messages");
  out.begin_array();
  for (const Ordered& one : ordered) {
    out.begin_object();
    out.member("id", one.id);
    out.member("destination", one.destination);
    out.member("type", one.type);
    out.member("verdict", one.verdict);
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return out.take();
}

}  // namespace idem::admin
