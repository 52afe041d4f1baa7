#pragma once

#include <idem/store.hpp>

#include <functional>
#include <memory>

/// Makes stores that need no library. The others have their own factories beside them.
namespace idem {

/// The reference: what it answers is what every store answers. Keeps nothing when it closes.
/// `clock` is for tests; it may be advanced from any thread and must not go back.
std::expected<std::unique_ptr<Store>, StoreError> open_memory(
    const IdentitySettings& settings, std::function<StoreTime()> clock = {});

}  // namespace idem
