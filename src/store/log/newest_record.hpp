#pragma once

#include "store/log/running_section.hpp"

#include <idem/record.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace idem::segments {

/// Finds when a record changed the last time, while a start goes through the log: by the versions
/// of the last commits, and by what was running. A commit may be of copies of older versions alone,
/// so some are kept.
class NewestRecord {
 public:
  /// Of the commit that follows.
  void see(std::string_view versions);
  std::optional<StoreTime> moment(RunningSection& running) const;

 private:
  std::array<std::string, 8> last_;
  std::size_t next_ = 0;
};

}  // namespace idem::segments
