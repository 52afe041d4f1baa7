#pragma once

#include "core/json/scalars.hpp"

#include <idem/limits.hpp>
#include <idem/store.hpp>

#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idem::admin {

/// The query of `GET /v1/keys?...`.
struct KeysQuery {
  List list{.limit = limits::list_page_default};
  /// A client's key, decoded. It must not be logged or answered.
  std::optional<std::string> key;
  /// A value that the index has. It must not be logged, either.
  std::optional<std::string> find;
  /// An age instead of a moment, counted back from the store's time.
  std::optional<Millis> older_than;
  /// As an age or a moment: older records are left out of the page.
  std::optional<Millis> newer_than;
  std::optional<StoreTime> created_from;
  /// Other records are left out of the page.
  bool contested = false;
  /// Values of each record's stored body, by their names in the listing.
  std::vector<std::pair<std::string, JsonPointer>> values;
};

using ParseDuration = std::function<std::expected<Millis, std::string>(const std::string&)>;

/// Parses a query string (application/x-www-form-urlencoded). The error names the parameter and
/// says what to write; it never repeats a value, which may be a key.
std::expected<KeysQuery, std::string> parse_keys_query(std::string_view query,
                                                       const ParseDuration& parse_duration);

/// "in_progress", ...
std::optional<State> parse_state(std::string_view name);

}  // namespace idem::admin
