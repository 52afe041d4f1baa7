#pragma once

#include "core/naming/identity_settling.hpp"
#include "core/naming/naming.hpp"
#include "core/record/which_store.hpp"

#include <expected>
#include <string>
#include <string_view>

namespace idem::mysql {

/// What the one row of idem_identity holds.
struct StoreIdentity {
  StoreId store_id{};  ///< No other store has it.
  RecordedIdentity recorded;
  Naming naming;  ///< Its generation is that of `recorded`.

  /// Records are named under the secret that the store has made itself.
  bool is_own() const;
};

/// The column `value`: little-endian numbers and framed texts, with a checksum at their end. The
/// row's other columns repeat parts of it for the functions of the schema.
std::string to_identity_value(const StoreIdentity& identity);
/// Total. The error is a sentence.
std::expected<StoreIdentity, std::string> parse_identity_value(std::string_view bytes);

}  // namespace idem::mysql
