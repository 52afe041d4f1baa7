#pragma once

#include "cli/commands/store_copy_print.hpp"
#include "store/known_kinds.hpp"

#include <expected>
#include <string>

namespace idem::cli {

struct CopyOrder {
  std::string from;
  std::string to;
  bool prepare = false;
  bool keep_source = false;
  std::string lost_copy;
};

/// Why a copy ended before its end.
struct CopyEnd {
  int code = 0;     ///< The exit code.
  std::string why;  ///< A sentence.
};

/// Opens both stores, copies, closes the source and finishes the target, as StoreCopyVerb promises.
std::expected<CopyReport, CopyEnd> run_copy(const CopyOrder& order, const KnownKind& from,
                                            const KnownKind& to);

/// Makes the source usable again, unless its copy is finished.
std::expected<void, CopyEnd> undo_copy(const CopyOrder& order, const KnownKind& from,
                                       const KnownKind& to);

}  // namespace idem::cli
