#pragma once

#include "store/store_copy.hpp"

namespace idem {

/// Lines of journals.
struct CopiedLines {
  std::uint64_t lines = 0;  ///< That both stores have now, alike.
  std::uint64_t put = 0;    ///< Lines and ends of journals that the target did not have before.
};

struct JournalWork {
  /// Fails if another run works on the target. Called before the first write to a journal: what is
  /// read before it and has changed after it refuses the write.
  std::function<std::expected<void, CopyError>()> may_write;
  /// Called with what is done so far, and whether lines were put since the call before.
  std::function<void(const CopiedLines&, bool was_put)> see;
};

/// Makes the journals of `to` those of `from`, with the moments of their lines.
std::expected<CopiedLines, CopyError> copy_journals(Store& from, Store& to,
                                                    const JournalWork& work);

}  // namespace idem
