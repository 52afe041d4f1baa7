#pragma once

#include <idem/open_store.hpp>
#include <idem/store.hpp>

#include <functional>
#include <set>
#include <string>
#include <vector>

/// Decides on a store's identity when it is opened (protocol.md §2); the store reads and writes it.
namespace idem {

/// From generation `from` until the next epoch, records are named under the secret of this id.
struct SecretEpoch {
  std::uint64_t from = 0;
  std::string id;
  bool operator==(const SecretEpoch&) const = default;
};

struct RecordedIdentity {
  std::array<std::uint8_t, 32> own{};  ///< The store's own secret; never changed.
  std::uint64_t generation = 1;
  std::string key_scope;
  std::string scope_source;
  std::vector<SecretEpoch> epochs{};  ///< By generation. None: all records are named under `own`.
  bool operator==(const RecordedIdentity&) const = default;
};

/// The generations of the live records.
struct GenerationCensus {
  bool empty = true;
  bool complete = true;  ///< False: some row cannot be read, and may be of any generation.
  std::set<std::uint64_t> generations{};

  bool has(std::uint64_t from, std::uint64_t end) const;
};

/// Returns the store's identity, and changes `recorded` (none at the first start) to what the store
/// must record. The error is a sentence: records would no longer be found; nothing is to be written
/// then. Calls `census`, which reads all records, at most once.
///
/// Without `which.make` the process names no records: it adopts the recorded settings if it has no
/// scope source of its own, and it is refused if it would begin a generation, because the processes
/// that name records could not go on. With `which.look`, `recorded` does not change. A refusal
/// that no start of another process ends calls `which.contradicted`.
std::expected<Identity, std::string> settle_identity(
    std::optional<RecordedIdentity>& recorded, const IdentitySettings& asked,
    const std::function<GenerationCensus()>& census, const WhichStore& which = {});

/// For a look at a store that can count its records only by stopping reserves: as if it had some
/// of the present generation, and none of an earlier one.
GenerationCensus present_generation(const RecordedIdentity& recorded);

/// A sentence: why a running node with these settings does not name records as the store has
/// recorded it. None: it does.
std::optional<std::string> why_not_named_by(const RecordedIdentity& recorded,
                                            const IdentitySettings& settings);

}  // namespace idem
