#pragma once

#include <idem/record.hpp>

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>

namespace idem::segments {

/// What a log had besides the frames that are whole.
struct HealedLog {
  std::uint64_t lost = 0;  ///< Frames in the middle or at the end that are known to be gone.
  /// Of a log that lost some: the records that ran in any frame, as they were last. How one of them
  /// ended may be in a frame that is gone, and the next one that ran has its place.
  std::map<RecordId, Record> ran;
  std::optional<StoreTime> newest;  ///< In the frames before the first of those, or in all.
};

/// For a copy of a damaged shard in the directory `path`: puts an empty frame in the place of each
/// frame in the middle of its log that is not whole, so that the frames after it are read, too.
/// `more`: as many empty ones after the last, where what the index has seen of a log that was cut
/// has to be made up for. Its mark of durable progress begins anew. The error is a sentence.
std::expected<HealedLog, std::string> heal_log(const std::string& path, std::uint64_t more);

}  // namespace idem::segments
