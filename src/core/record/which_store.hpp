#pragma once

#include <idem/open_store.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The store that a start found, and whether it may use it (<idem/open_store.hpp>).
namespace idem {

/// Identifies a store; made with it.
using StoreId = std::array<std::uint8_t, 16>;

/// As 8-4-4-4-12 hexadecimal digits.
std::string store_id_text(const StoreId& id);

/// How the sentence begins that a store is missing.
inline constexpr std::string_view no_store_here = "there is no store here";

/// A sentence: why `which` does not allow the store of the id `there`, or (without one) making a
/// new store. None: it allows it.
std::optional<std::string> why_not(const WhichStore& which, const std::optional<StoreId>& there);

/// A sentence: why a new connection is refused that leads to another store.
std::string another_store(const StoreId& opened, const StoreId& there);

}  // namespace idem
