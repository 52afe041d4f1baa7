#pragma once

#include "store/log/database.hpp"
#include "store/record_rows.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace idem::segments {

/// When the reaper has to look at which version of a record: one list a moment and transaction, as
/// the records of one commit mostly end together. Nothing is taken out of a list: a version that is
/// not the present one any more counts as gone, and a list without others is deleted.
class DueLists {
 public:
  struct Entry {
    RecordId id;
    std::int64_t place = 0;
  };
  /// Whether the version at this place is its record's present one, and not hidden.
  using IsPresent = std::function<bool(const Entry& entry)>;

  explicit DueLists(Database& db) : db_(db) {}

  /// Those are on a list until their versions are replaced.
  static bool has(State state) noexcept {
    return state == State::completed || state == State::failed_retryable || state == State::expired;
  }
  /// Shows the entries of a list in the index. False: it is damaged.
  static bool each(std::string_view key, std::string_view value,
                   const std::function<void(const Entry&)>& see);

  /// From the next transaction on.
  void add(StoreTime due, const Entry& entry);
  /// Writes what was added; before a commit.
  void flush(const IsPresent& is_present);

  /// The longest due first.
  std::vector<RecordId> due(StoreTime now, std::size_t limit, const IsPresent& is_present);

 private:
  void note_gone(std::string_view key, std::size_t bytes);

  Database& db_;
  std::map<StoreTime, std::vector<Entry>> added_;
  std::string first_;  ///< No list has a smaller key.
  /// Of lists that a slice was in: so many bytes from their beginning are entries that count as
  /// gone, and need no look any more. A list may come in front of one of them.
  std::map<std::string, std::size_t, std::less<>> gone_;
  std::string bytes_;
};

}  // namespace idem::segments
