#include "admin/keys_query.hpp"

#include "admin/query.hpp"
#include "core/bytes/hex.hpp"
#include "core/bytes/rfc3339.hpp"

#include <idem/limits.hpp>
#include <idem/search_limits.hpp>
#include <idem/worker_limits.hpp>

#include <array>
#include <charconv>
#include <set>

namespace idem::admin {
namespace {

using Checked = std::expected<void, std::string>;

class QueryReader {
 public:
  explicit QueryReader(const ParseDuration& parse_duration) : parse_duration_(parse_duration) {}

  Checked parse(const std::string& name, std::string value) {
    if (name == "value") return parse_value(value);
    if (!seen_.insert(name).second) return wrong(name, "appears twice");
    if (value.empty()) return wrong(name, "is empty; leave it out instead");
    auto& list = query_.list;
    if (name == "state") {
      list.state = parse_state(value);
      if (!list.state) {
        return wrong(name,
                     "must be pending, in_progress, completed, failed_retryable, unknown or "
                     "expired");
      }
    } else if (name == "scope") {
      list.scope = std::move(value);
    } else if (name == "operation") {
      list.operation = std::move(value);
    } else if (name == "key") {
      if (value.size() > limits::key_bytes_max) return wrong(name, "is longer than 255 bytes");
      query_.key = std::move(value);
    } else if (name == "find") {
      if (value.size() > limits::search_value_bytes_max) {
        return wrong(name, "is longer than 256 bytes, and such values are not indexed");
      }
      query_.find = std::move(value);
    } else if (name == "older_than") {
      return parse_age(name, value, query_.list.created_before, query_.older_than);
    } else if (name == "newer_than") {
      return parse_age(name, value, query_.created_from, query_.newer_than);
    } else if (name == "contested") {
      if (value != "true") return wrong(name, "must be true; leave it out to list all records");
      query_.contested = true;
    } else if (name == "limit") {
      return parse_limit(value);
    } else if (name == "cursor") {
      list.after = parse_handle(value);
      if (!list.after) return wrong(name, "must be the \"next\" of an earlier answer");
    }
    return {};
  }

  std::expected<KeysQuery, std::string> result() {
    if (query_.key && (!query_.list.scope || !query_.list.operation)) {
      return std::unexpected(
          "key: the store has only a digest of scope, operation and key; give scope and "
          "operation, too");
    }
    if (query_.find && (query_.key || query_.list.after)) {
      return std::unexpected("find: has no pages, and does not go with key; leave out the other");
    }
    return std::move(query_);
  }

 private:
  static Checked wrong(const std::string& name, std::string_view what) {
    return std::unexpected(name + ": " + std::string(what));
  }

  Checked parse_age(const std::string& name, const std::string& value,
                    std::optional<StoreTime>& moment, std::optional<Millis>& age) {
    moment = parse_rfc3339(value);
    if (moment) return {};
    const auto parsed = parse_duration_(value);
    if (!parsed) return wrong(name, "must be an age such as 30m or 24h, or an RFC 3339 time");
    age = *parsed;
    return {};
  }

  Checked parse_value(const std::string& value) {
    auto pointer = JsonPointer::parse(value);
    if (!pointer || value.empty()) return wrong("value", "must be a JSON Pointer such as /amount");
    if (query_.values.size() == limits::listed_values_max) {
      return wrong("value", "appears more than eight times");
    }
    query_.values.emplace_back(value, std::move(*pointer));
    return {};
  }

  Checked parse_limit(const std::string& value) {
    const char* end = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), end, query_.list.limit);
    const bool good = parsed.ec == std::errc{} && parsed.ptr == end;
    if (good && query_.list.limit >= 1 && query_.list.limit <= limits::list_page_max) return {};
    return wrong("limit", "must be a whole number from 1 to 1000");
  }

  const ParseDuration& parse_duration_;
  KeysQuery query_;
  std::set<std::string> seen_;
};

}  // namespace

std::optional<State> parse_state(std::string_view name) {
  for (const auto state : {State::pending, State::in_progress, State::completed,
                           State::failed_retryable, State::unknown, State::expired}) {
    if (name_of(state) == name) return state;
  }
  return std::nullopt;
}

std::expected<KeysQuery, std::string> parse_keys_query(std::string_view query,
                                                       const ParseDuration& parse_duration) {
  static constexpr std::array<std::string_view, 11> known{
      "state",      "scope",     "operation", "key",    "find", "older_than",
      "newer_than", "contested", "limit",     "cursor", "value"};
  QueryReader reader(parse_duration);
  auto pairs = parse_query(query, known);
  if (!pairs) return std::unexpected(std::move(pairs.error()));
  for (auto& [name, value] : *pairs) {
    if (const auto parsed = reader.parse(name, std::move(value)); !parsed) {
      return std::unexpected(parsed.error());
    }
  }
  return reader.result();
}

}  // namespace idem::admin
