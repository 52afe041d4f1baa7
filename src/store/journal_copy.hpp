#pragma once

#include "store/store_copy.hpp"

namespace idem {

/// Lines of journals.
struct CopiedLines {
  std::uint64_t lines = 0;  ///< That both stores have now, alike.
  std::uint64_t put = 0;    ///< Lines and ends of journals that the target did not have before.
};

/// Makes the journals of `to` those of `from`, with the moments of their lines. Calls `may_write`,
/// which fails if another run works on `to`, before the first write to a journal: what is read
/// before it and has changed behind it refuses the write.
std::expected<CopiedLines, CopyError> copy_journals(
    Store& from, Store& to, const std::function<std::expected<void, CopyError>()>& may_write);

}  // namespace idem
