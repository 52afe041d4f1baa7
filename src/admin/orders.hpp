#pragma once

#include <idem/store.hpp>

#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace idem::admin {

/// What an operator orders, as JSON. Every error says where (a JSON Pointer, or the byte at which
/// the text stopped being JSON) and what to write. Members that are not known are refused: a
/// misspelt one must not be left out silently.

struct ResolveOrder {
  Resolve verb;  ///< Without the record's id and the source.
  /// When the evidence was seen; none: now, by the store's clock.
  std::optional<StoreTime> observed_at;
};
std::expected<ResolveOrder, std::string> parse_resolve(std::string_view body);

/// Without the record's id and the source.
std::expected<CacheBust, std::string> parse_release(std::string_view body);

}  // namespace idem::admin
