#pragma once

#include "core/naming/identity_settling.hpp"
#include "core/naming/naming.hpp"
#include "store/redis/rows.hpp"

#include <expected>
#include <string>
#include <string_view>

namespace idem::redis {

/// What is recorded of the store as a whole, in one value that is replaced as a whole.
struct StoreIdentity {
  std::array<std::uint8_t, 16> store_id{};  ///< Tells this store from every other.
  RecordedIdentity recorded;
  Naming naming;  ///< Its generation is that of `recorded`.
  /// Random, made with the generation: a number alone comes again where a change was lost with a
  /// server, and in another store.
  std::array<std::uint8_t, 16> generation_mark{};
  std::uint64_t change = 0;  ///< The number of the latest change of it; they grow.
  /// A change is under way, since then by the server's clock: buckets are closed for it.
  bool is_changing = false;
  StoreTime changing_since{};
  /// False until the first start has given every bucket its beginnings.
  bool is_complete = false;
};

/// What stands in a bucket that lets reserves of its generation in.
std::string generation_text(const StoreIdentity& identity);

std::string to_identity_value(const Version& version, const StoreIdentity& identity);
struct IdentityValue {
  Version version{};
  StoreIdentity identity;
};
/// Total.
std::expected<IdentityValue, std::string> parse_identity_value(std::string_view bytes);

}  // namespace idem::redis
