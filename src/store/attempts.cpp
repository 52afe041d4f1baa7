#include "store/attempts.hpp"

#include <idem/limits.hpp>

namespace idem {

void Attempts::keep(const RowVersion& version, const Record& record) {
  // Any one will do: it costs its owner's next verb one more round trip.
  if (kept_.size() >= limits::store_attempts_kept_max) kept_.erase(kept_.begin());
  Kept& kept = kept_[record.id];
  kept = {version, record};
  kept.record.response.reset();
  if (kept.record.stored_request) kept.record.stored_request->clear();
}

}  // namespace idem
