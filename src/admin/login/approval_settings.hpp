#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace idem::admin {

/// Which decisions may need approvals.
enum class ApprovalKind : std::uint8_t { resolve, release, jobs, discard };
inline constexpr std::size_t approval_kind_count = 4;

/// How many different logins a decision of each kind needs; 1: the one who decides.
struct ApprovalSettings {
  std::array<unsigned, approval_kind_count> needs{1, 1, 1, 1};

  unsigned of(ApprovalKind kind) const noexcept { return needs[static_cast<std::size_t>(kind)]; }
  bool are_needed() const noexcept {
    for (const unsigned one : needs) {
      if (one > 1) return true;
    }
    return false;
  }
};

}  // namespace idem::admin
