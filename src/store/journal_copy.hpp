#pragma once

#include "store/store_copy.hpp"

namespace idem {

/// Lines of journals.
struct CopiedLines {
  std::uint64_t lines = 0;  ///< That both stores have now, alike.
  std::uint64_t put = 0;    ///< Of them, those that the target did not have before.
};

/// Makes the journals of `to` those of `from`, with the moments of their lines.
std::expected<CopiedLines, CopyError> copy_journals(Store& from, Store& to);

}  // namespace idem
