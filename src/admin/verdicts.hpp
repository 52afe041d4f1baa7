#pragma once

#include "admin/jobs/job.hpp"

#include <idem/store.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>

/// What becomes of an operator's decision, in words.
namespace idem::admin {

/// The moment after which "not there" counts, where the reply is too_early; otherwise empty. Empty
/// for a contested record, too: there it never counts.
std::string counts_from(const Resolve::Reply& reply, const std::optional<Record>& record,
                        Millis grace);

/// Why a decision was refused. `record` adds details; it may have changed since.
std::string why_refused(const Resolve::Reply& reply, const std::optional<Record>& record,
                        const std::string& counts_from);

/// A note for the evidence log, whose lines have no verdict: " (refused: ...)" if the order would
/// be refused on this record. The store decides afterwards, and the line itself says whether it
/// applied the order. Empty: the order would be done.
std::string foreseen(const std::optional<Record>& record, const Resolve& order, StoreTime now);
std::string foreseen(const std::optional<Record>& record, const CacheBust& order,
                     std::span<const EvidenceEntry> log, StoreTime now);

}  // namespace idem::admin
