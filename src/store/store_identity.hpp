#pragma once

#include "core/naming/identity_settling.hpp"
#include "core/naming/naming.hpp"
#include "store/record_rows.hpp"

#include <expected>
#include <string>
#include <string_view>

namespace idem {

/// The recorded identity of the store: one value, always replaced as a whole.
struct StoreIdentity {
  std::array<std::uint8_t, 16> store_id{};  ///< No other store has it.
  RecordedIdentity recorded;
  Naming naming;  ///< Its generation is that of `recorded`.
  /// Random, made with the generation: its number alone may repeat, if a server lost a change or in
  /// another store.
  std::array<std::uint8_t, 16> generation_mark{};
  std::uint64_t change = 0;  ///< The number of its latest change; they grow.
  /// A change is under way, since `changing_since` by the server's clock, and buckets are closed.
  bool is_changing = false;
  StoreTime changing_since{};
  /// False until the first start has initialised every bucket.
  bool is_complete = false;
};

/// A bucket with this text as its generation admits that generation's reserves, and claims unless
/// it begins with "copied:".
std::string generation_text(const StoreIdentity& identity);

std::string to_identity_value(const RowVersion& version, const StoreIdentity& identity);
struct IdentityValue {
  RowVersion version{};
  StoreIdentity identity;
};
/// Total.
std::expected<IdentityValue, std::string> parse_identity_value(std::string_view bytes);

}  // namespace idem
