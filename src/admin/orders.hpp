#pragma once

#include "json/value.hpp"

#include <idem/store.hpp>

#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace idem::admin {

/// One key of `POST /v1/keys/refs`.
struct NamedKey {
  std::string scope;
  std::string operation;
  std::string key;
};
/// `{"keys":[{"scope":...,"operation":...,"key":...}]}`, limits::list_page_max at most. The error
/// names the place, and never repeats a key.
std::expected<std::vector<NamedKey>, std::string> parse_named_keys(std::string_view body);

/// An operator's order, as JSON. Every error names the place (a JSON Pointer, or the byte at which
/// the text stops being JSON) and says what to write. An unknown member is an error, because it may
/// be a misspelt one.

struct ResolveOrder {
  Resolve verb;  ///< Without the record's id and the source.
  /// When the operator saw the evidence; none: now, by the store's clock.
  std::optional<StoreTime> observed_at;
};
std::expected<ResolveOrder, std::string> parse_resolve(std::string_view body);

/// The member `observed_at`; none: it is missing.
std::expected<std::optional<StoreTime>, std::string> read_observed_at(const json::Value& object);
/// An operator's moment comes from a wall clock, and the store's clock may be far from it
/// (protocol.md §15). The difference of today says nothing about that of then, so nothing is
/// converted. Why it cannot be compared; none: it can be.
std::optional<std::string> why_incomparable(StoreTime observed_at, StoreTime now, StoreTime wall);

/// The members `as`, `evidence`, `reason` and `response`: an order that names no record.
std::expected<Resolve, std::string> read_resolve(const json::Value& object);

/// Without the record's id and the source.
std::expected<CacheBust, std::string> parse_release(std::string_view body);

}  // namespace idem::admin
