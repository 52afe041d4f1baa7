#pragma once

#include <idem/store.hpp>

#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace idem::admin {

/// What names a record, of `POST /v1/keys/refs`.
struct NamedKey {
  std::string scope;
  std::string operation;
  std::string key;
};
/// `{"keys":[{"scope":...,"operation":...,"key":...}]}`, limits::list_page_max at most. The error
/// names the place, and never repeats a key.
std::expected<std::vector<NamedKey>, std::string> parse_named_keys(std::string_view body);

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
