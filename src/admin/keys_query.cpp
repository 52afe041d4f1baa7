#include "admin/keys_query.hpp"

#include "admin/reference.hpp"
#include "core/rfc3339.hpp"

#include <idem/limits.hpp>

#include <array>
#include <charconv>
#include <set>

namespace idem::admin {
namespace {

using Checked = std::expected<void, std::string>;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return decoded;
}

class QueryReader {
 public:
  explicit QueryReader(const ParseDuration& parse_duration) : parse_duration_(parse_duration) {}

  Checked take(const std::string& name, std::string value) {
    if (!seen_.insert(name).second) return wrong(name, "is there twice");
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
    } else if (name == "older_than") {
      return take_age(value);
    } else if (name == "limit") {
      return take_limit(value);
    } else if (name == "cursor") {
      list.after = parse_ref(value);
      if (!list.after) return wrong(name, "must be the \"next\" of an earlier answer");
    }
    return {};
  }

  std::expected<KeysQuery, std::string> result() {
    if (query_.key && (!query_.list.scope || !query_.list.operation)) {
      return std::unexpected(
          "key: only a digest of it is stored, over scope, operation and key; give scope= and "
          "operation= too");
    }
    return std::move(query_);
  }

 private:
  static Checked wrong(const std::string& name, std::string_view what) {
    return std::unexpected(name + ": " + std::string(what));
  }

  Checked take_age(const std::string& value) {
    if (const auto moment = parse_rfc3339(value)) {
      query_.list.created_before = *moment;
      return {};
    }
    const auto age = parse_duration_(value);
    if (!age) return wrong("older_than", "must be an age such as 30m or 24h, or an RFC 3339 time");
    query_.older_than = *age;
    return {};
  }

  Checked take_limit(const std::string& value) {
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
  static constexpr std::array<std::string_view, 7> known{"state",      "scope", "operation", "key",
                                                         "older_than", "limit", "cursor"};
  QueryReader reader(parse_duration);
  while (!query.empty()) {
    const auto part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(part.size() + 1, query.size()));
    const auto equals = std::min(part.find('='), part.size());
    const auto name = decode(part.substr(0, equals));
    auto value = decode(part.substr(std::min(equals + 1, part.size())));
    const auto at = name ? std::find(known.begin(), known.end(), *name) : known.end();
    if (at == known.end()) {
      return std::unexpected(
          "there is a parameter that is none of state, scope, operation, key, older_than, limit "
          "and "
          "cursor");
    }
    if (!value) return std::unexpected(*name + ": a % without two hexadecimal digits behind it");
    if (const auto taken = reader.take(*name, std::move(*value)); !taken) {
      return std::unexpected(taken.error());
    }
  }
  return reader.result();
}

}  // namespace idem::admin
