#pragma once

#include "cli/reconcile/reconcile_options.hpp"
#include "compare/export_reader.hpp"
#include "core/bytes/digests.hpp"

#include <expected>
#include <memory>
#include <string>

namespace idem::cli {

/// How reading a list ended.
struct ListEnd {
  bool not_reachable = false;  ///< The last request got no answer.
  /// Some page named its next page, or said that there is none.
  bool states_its_end = false;
};

/// The pages of a provider's list. Reading them adds their bytes to `digest` and fills in `end`.
/// The error is a sentence about the options.
std::expected<compare::ListPages, std::string> list_pages(const ReconcileOptions& options,
                                                          std::shared_ptr<FramedDigest> digest,
                                                          std::shared_ptr<ListEnd> end);

/// The URL of the next page. With `parameter`, `next` is a cursor for that parameter of the list's
/// URL; without, `next` is a URL or a path on the current page's host. The error is a sentence.
std::expected<std::string, std::string> next_url(const std::string& list,
                                                 const std::string& parameter,
                                                 const std::string& next);

}  // namespace idem::cli
