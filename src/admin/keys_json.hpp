#pragma once

#include "admin/links.hpp"
#include "admin/login/role.hpp"
#include "core/json/scalars.hpp"
#include "core/record/find_journals.hpp"
#include "json/writer.hpp"

#include <idem/store.hpp>

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace idem::admin {

/// One record of a listing.
struct ListedKey {
  Record record;
  /// The requested values of the stored body, as JSON; empty: none were requested.
  std::string values{};
  std::vector<std::string> found_by{};  ///< Of a search: what the value is to it.
};

/// What a search for a value has read.
struct Searched {
  FindNote indexed{};                 ///< Since `since`, by the process that noted it last.
  std::optional<StoreTime> since{};   ///< None: no process ever indexed anything.
  bool has_earlier_settings = false;  ///< Before `since`.
  std::size_t days = 0;
  bool has_more = false;       ///< Not all that has the value was read.
  std::size_t unreadable = 0;  ///< Lines that are damaged, or were sealed under a lost secret.
};

/// The store's records by their states.
void write_counts(json::Writer& out, const Census& census);

/// A page of records. The following page begins after `next`; the census has the counts of the
/// whole store, and its time, from which the age of a record counts.
std::string keys_page(std::span<const ListedKey> keys, const std::optional<RecordId>& next,
                      const Census& census, const Searched* searched = nullptr);

/// One record as a listing shows it: a JSON object.
std::string key_summary(const Record& record);

/// These values of a body, each a string, or a number or boolean as the body spells it, or null.
/// `null` for a body that is not JSON or not stored.
std::string values_of(const std::optional<StoredResponse>& response,
                      std::span<const std::pair<std::string, JsonPointer>> values);

/// The refs that each of several keys could have.
std::string refs_page(std::span<const std::set<RecordId>> refs);

/// One record with its evidence log, without token and stored request, and with the beginning of
/// its fingerprint. Withheld are fields and body of the answer, and what a provider said.
/// `evidence_damage`: why the log cannot be read; empty: it can.
std::string key_page(const Record& record, std::span<const EvidenceEntry> evidence,
                     std::string_view evidence_damage, Bodies bodies, const Links& links);

}  // namespace idem::admin
