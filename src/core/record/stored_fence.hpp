#pragma once

#include <idem/record.hpp>

/// A fence as stores, the SQL functions and the admin API write it: 0 where there is none.
namespace idem {

constexpr std::uint64_t stored_fence(const std::optional<Fence>& fence) noexcept {
  return fence.value_or(0);
}
constexpr std::optional<Fence> fence_from(std::uint64_t stored) noexcept {
  return stored == 0 ? std::nullopt : std::optional<Fence>(stored);
}

}  // namespace idem
