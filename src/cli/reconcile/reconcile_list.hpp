#pragma once

#include "cli/reconcile/reconcile_options.hpp"
#include "compare/export_reader.hpp"
#include "core/bytes/digests.hpp"

#include <expected>
#include <memory>
#include <string>

namespace idem::cli {

/// How far a list was read.
struct ListEnd {
  bool not_reachable = false;  ///< Nobody answered.
  /// Some page said what comes next, or that nothing does.
  bool tells_its_end = false;
};

/// The pages of a provider's list. `digest` becomes that of all of them one behind the other, `end`
/// what they say. The error is a sentence about the options.
std::expected<compare::ListPages, std::string> list_pages(const ReconcileOptions& options,
                                                          std::shared_ptr<FramedDigest> digest,
                                                          std::shared_ptr<ListEnd> end);

/// Where the next page is: a cursor goes into `parameter` of the list's URL; without one, `next` is
/// a URL, or a path on the host of the present page. The error is a sentence.
std::expected<std::string, std::string> next_url(const std::string& list,
                                                 const std::string& parameter,
                                                 const std::string& next);

}  // namespace idem::cli
