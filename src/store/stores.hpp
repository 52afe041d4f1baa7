#pragma once

#include <idem/store.hpp>

#include <functional>
#include <memory>

/// Opens stores that need no library. The others have factories of their own.
namespace idem {

/// The reference: every store answers as it does. Keeps nothing when it closes.
/// `clock` is for tests; it may be advanced from any thread and must not go back.
std::expected<std::unique_ptr<Store>, StoreError> open_memory(
    const IdentitySettings& settings, std::function<StoreTime()> clock = {});

}  // namespace idem
