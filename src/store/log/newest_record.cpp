#include "store/log/newest_record.hpp"

#include "core/record/stored_record_codec.hpp"
#include "store/log/compaction.hpp"
#include "store/record_rows.hpp"

namespace idem::segments {

void NewestRecord::see(std::string_view versions) {
  if (versions.empty()) return;
  last_[next_] = versions;
  next_ = (next_ + 1) % last_.size();
}

std::optional<StoreTime> NewestRecord::moment(RunningSection& running) const {
  std::optional<StoreTime> newest;
  const auto look_at = [&](const RecordId& id, std::string_view bytes) {
    const auto record = decode_record(id, bytes);
    if (record && (!newest || *newest < record->changed_at)) newest = record->changed_at;
  };
  for (const std::string& versions : last_) {
    std::size_t seen = 0;
    while (const auto version = version_in(std::string_view(versions).substr(seen))) {
      if (const auto id = to_id(version->id)) look_at(*id, version->record);
      seen += version->bytes.size();
    }
  }
  running.visit(
      [&](const embedded::RunningCells::Found& found) { look_at(found.id, found.record); });
  return newest;
}

}  // namespace idem::segments
