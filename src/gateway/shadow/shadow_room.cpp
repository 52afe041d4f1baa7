#include "gateway/shadow/shadow_room.hpp"

#include <idem/limits.hpp>

namespace idem::gateway {

bool ShadowRoom::take_place() noexcept {
  if (places_.fetch_add(1, std::memory_order_acq_rel) < limits::shadow_observations_max) {
    return true;
  }
  give_place();
  return false;
}

bool ShadowRoom::take_bytes(std::size_t bytes) noexcept {
  const std::size_t before = bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (before <= limits::shadow_bytes_max && bytes <= limits::shadow_bytes_max - before) return true;
  give_bytes(bytes);
  return false;
}

}  // namespace idem::gateway
