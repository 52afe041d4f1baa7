#pragma once

#include <idem/store.hpp>

#include <optional>
#include <span>
#include <string>

namespace idem::admin {

/// A page of records; `next` is where the following one begins.
std::string keys_page(std::span<const Record> records, const std::optional<RecordId>& next);

/// All that may be told of one record: never its token, its fingerprint or its request.
std::string key_page(const Record& record, std::span<const EvidenceEntry> evidence);

}  // namespace idem::admin
