#pragma once

#include <idem/record.hpp>

#include <optional>
#include <string>
#include <vector>

/// @file
/// The log of decisions about a record, beside it in the store.
namespace idem::inline v0_1 {

/// One line of the append-only log of decisions about a record (§19).
struct EvidenceEntry {
  std::optional<Fence> fence{};  ///< Of its attempt, if it names one.
  std::string source;
  std::string evidence;
  std::string reason;
  State before{};
  State after{};
  bool applied = false;
  StoreTime observed_at{};
  StoreTime recorded_at{};
  bool operator==(const EvidenceEntry&) const = default;
};
/// The decisions about one record.
struct ReadEvidence {
  using Reply = std::vector<EvidenceEntry>;  ///< Oldest first.
  RecordId id;
};

}  // namespace idem::inline v0_1
