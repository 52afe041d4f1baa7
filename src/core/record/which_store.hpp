#pragma once

#include <idem/open_store.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

/// Which store a start found, and whether it may use it (<idem/open_store.hpp>).
namespace idem {

/// Tells a store from every other; made with it.
using StoreId = std::array<std::uint8_t, 16>;

/// As 8-4-4-4-12 hexadecimal digits.
std::string store_id_text(const StoreId& id);

/// Why `which` does not allow the store of the id `there`, or that one is made where there is none:
/// a sentence. None: it does.
std::optional<std::string> why_not(const WhichStore& which, const std::optional<StoreId>& there);

/// Of a connection that was made anew: why it is refused.
std::string another_store(const StoreId& opened, const StoreId& there);

}  // namespace idem
