#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

/// @file
/// What names the records of a store (protocol.md §2).
namespace idem::inline v0_1 {

/// The settings that decide under which name a record is found; the store records them (§2). While
/// it holds records, it refuses a start with other settings, and one without a secret of a record.
struct IdentitySettings {
  std::string key_scope = "operation";  ///< Or "tenant".
  std::string scope_source;
  /// Newest first; empty: the store's own. New records are made under the first; each other one is
  /// needed while it has records. The store keeps only their ids.
  std::vector<std::array<std::uint8_t, 32>> secrets{};
};
/// What names the records of an open store.
struct Identity {
  /// When the store was opened; AdoptRoutes may begin another.
  std::uint64_t generation = 0;
  std::array<std::uint8_t, 32> secret{};  ///< Names and fingerprints are made under it.
  /// Older secrets that may have made records, newest first.
  std::vector<std::array<std::uint8_t, 32>> older{};
  /// The store makes it at its first start and never changes it, so that a scope which is a digest
  /// under it outlives every rotation.
  std::array<std::uint8_t, 32> scope_secret{};
};

}  // namespace idem::inline v0_1
