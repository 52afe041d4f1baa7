#include "store/log/reindex_store.hpp"

#include "store/log/log_store.hpp"
#include "store/log/look.hpp"

#include <idem/store_wait.hpp>

#include <numeric>

namespace idem::segments {

std::expected<std::uint64_t, StoreFileError> reindex_store(const std::string& path,
                                                           const StoreFileProgress& progress) {
  if (auto why = why_no_store(path)) return std::unexpected(std::move(*why));
  using Kind = StoreFileError::Kind;
  auto store = open_log(
      path, {},
      {.which = {.make = false}, .as_recorded = true, .reindex = true, .reindexing = progress});
  if (!store) return std::unexpected(StoreFileError{Kind::refused, store.error().detail});
  const auto census = ask_and_wait(**store, Count{});
  if (!census) return std::unexpected(StoreFileError{Kind::failed, census.error().detail});
  return std::accumulate(census->by_state.begin(), census->by_state.end(), std::uint64_t{0});
}

}  // namespace idem::segments
