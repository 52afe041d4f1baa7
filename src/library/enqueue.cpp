#include "core/bytes/utf8.hpp"
#include "store/internal_sql.hpp"

#include <idem/fingerprint.hpp>
#include <idem/worker_limits.hpp>

namespace idem {
namespace {

/// A sentence; empty: the message is valid.
std::string what_is_wrong(const Message& message) {
  const auto is_name = [](const std::string& name) {
    return name.size() <= limits::message_name_bytes_max && is_utf8(name) &&
           name.find('\0') == name.npos;
  };
  if (message.destination.empty() || message.type.empty()) {
    return "enqueue: a message needs a destination and a type";
  }
  for (const std::string* name : {&message.destination, &message.type, &message.aggregate_type,
                                  &message.aggregate_id, &message.content_type}) {
    if (!is_name(*name)) return "enqueue: a name is too long, or is no UTF-8 text: " + *name;
  }
  if (message.payload.size() > limits::message_payload_bytes_max) {
    return "enqueue: the payload is larger than 1 MiB";
  }
  if (!is_utf8(message.payload) || message.payload.find('\0') != message.payload.npos) {
    return "enqueue: the payload is no UTF-8 text";
  }
  return {};
}

}  // namespace

std::string Transaction::enqueue(const Message& message) {
  if (auto why = what_is_wrong(message); !why.empty()) fail(std::move(why));
  std::string id = to_hex(random_token().bytes);
  InternalSql::run(*this, InternalStatement::put_message,
                   {id, to_hex(record_id().bytes), message.destination, message.aggregate_type,
                    message.aggregate_id, message.type, message.payload, message.content_type});
  return failed() ? std::string() : id;
}

}  // namespace idem
