#pragma once

#include "core/json/scalars.hpp"

#include <idem/store.hpp>

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace idem::admin {

/// What a listing tells of one record.
struct ListedKey {
  Record record;
  /// Of the stored body, as a JSON object; empty: none were asked for.
  std::string values{};
};

/// A page of records; `next` is where the following one begins, `now` the store's time, by which
/// they are as old as they are.
std::string keys_page(std::span<const ListedKey> keys, const std::optional<RecordId>& next,
                      StoreTime now);

/// These values of a body: of each the text of a string, a number or a truth value as it is
/// spelled, or null. `null` for a body that is no JSON or is not kept.
std::string values_of(const std::optional<StoredResponse>& response,
                      std::span<const std::pair<std::string, JsonPointer>> values);

/// The refs that each of some keys could have.
std::string refs_page(std::span<const std::set<RecordId>> refs);

/// All that may be told of one record: never its token, its fingerprint or its request.
std::string key_page(const Record& record, std::span<const EvidenceEntry> evidence);

}  // namespace idem::admin
