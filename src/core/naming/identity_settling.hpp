#pragma once

#include <idem/store.hpp>

#include <functional>
#include <set>
#include <string>
#include <vector>

/// What a store does about its identity when it is opened (protocol.md §2), but for reading and
/// writing it.
namespace idem {

/// From a generation on, until the next one's, records are named under the secret of this id.
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
  std::vector<SecretEpoch> epochs{};  ///< By generation. None: `own` made everything.
  bool operator==(const RecordedIdentity&) const = default;
};

/// Of the live records.
struct GenerationCensus {
  bool empty = true;
  bool complete = true;  ///< False: some row cannot be read, and may be of any generation.
  std::set<std::uint64_t> generations{};

  bool has(std::uint64_t from, std::uint64_t end) const;
};

/// What the store answers as its identity, with `recorded` changed to what is to be recorded from
/// now on; none: the first start. Refused with a sentence, and nothing to be written, where records
/// would be found no more. `census` may be asked once; it looks at all records.
///
/// Who does not `choose` names no records: without a scope source of its own it takes the settings
/// that are recorded, and it is refused where it would begin a generation, in which those who do
/// name records could not go on.
std::expected<Identity, std::string> settle_identity(
    std::optional<RecordedIdentity>& recorded, const IdentitySettings& asked,
    const std::function<GenerationCensus()>& census, bool chooses = true);

/// True when a node of these settings names records as the store has it recorded now.
bool is_named_by(const RecordedIdentity& recorded, const IdentitySettings& settings);

}  // namespace idem
