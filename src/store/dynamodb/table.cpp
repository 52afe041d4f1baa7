#include "store/dynamodb/table.hpp"

#include "core/bytes/digests.hpp"
#include "core/transitions/transitions.hpp"

#include <fmt/format.h>

namespace idem::dynamodb {
namespace {

std::int64_t to_number(const std::optional<StoreTime>& moment) {
  return moment ? moment->time_since_epoch().count() : never_due;
}

}  // namespace

std::string record_partition(std::size_t bucket) { return fmt::format("r{:02x}", bucket); }

Key record_key(const RecordId& id) {
  return {record_partition(id.bytes[0]), std::string(bytes_of(id))};
}

std::string pieces_partition(std::size_t bucket) { return fmt::format("p{:02x}", bucket); }

Key piece_key(const RecordId& id, std::string_view version, char kind, std::size_t number) {
  Key key{pieces_partition(id.bytes[0]), std::string(bytes_of(id))};
  key.sort += version;
  key.sort += kind;
  key.sort += static_cast<char>(number >> 8);  // The largest byte first: pieces lie in order.
  key.sort += static_cast<char>(number & 0xFF);
  return key;
}

Key identity_key() { return {"i", "identity"}; }
Key counts_key() { return {"n", "counts"}; }

// A scope may be longer than a key.
Key usage_key(const std::string& scope) {
  const Digest digest = sha256(scope);
  return {fmt::format("u{:x}", digest[0] & 15U), std::string(view_of(digest))};
}

std::string list_part(char list, std::size_t part) { return fmt::format("{}{:x}", list, part); }

char list_of(State state) {
  switch (state) {
    case State::pending:
      return 'p';
    case State::in_progress:
      return 'i';
    case State::unknown:
      return 'u';
    case State::completed:
      return 'c';
    case State::failed_retryable:
      return 'f';
    case State::expired:
      return 'x';
  }
  return 'x';
}

void set_places(Update& update, const Record& record) {
  const std::size_t part = record.id.bytes.back() % list_parts;
  const auto due = record.state == State::unknown ? std::optional(record.changed_at)
                                                  : transitions::due_at(record);
  update.set(attribute::due, list_part(list_of(record.state), part));
  update.set(attribute::due_at, to_number(due));
  if (record.state == State::pending) {
    update.set(attribute::claims, list_part('c', part));
    update.set(attribute::claimable_at, to_number(record.locked_until));
  } else {
    update.remove(attribute::claims).remove(attribute::claimable_at);
  }
}

}  // namespace idem::dynamodb
