#pragma once

namespace idem::cli {

/// From here on the kernel writes no core dump of this process, and no other process of its user
/// reads its memory or environment (prctl(2), PR_SET_DUMPABLE): keys, bodies, tokens and secrets
/// lie there in clear. Root still can. It counts for all threads. Never fails.
void forbid_core_dumps() noexcept;

/// Takes that back, for who looks for a defect of Idem's.
void allow_core_dumps() noexcept;

}  // namespace idem::cli
