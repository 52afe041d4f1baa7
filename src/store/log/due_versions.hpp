#pragma once

#include "store/log/database.hpp"
#include "store/record_rows.hpp"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace idem::segments {

/// The present versions of the records that a slice of the lifecycle has to look at. They were
/// written together, so one read brings those that follow, too; and what was found of their ids
/// needs no second look.
class DueVersions {
 public:
  explicit DueVersions(Database& db) : db_(db) {}

  /// A version that is its record's present one until clear().
  void add(const IdEntry& present);
  void clear() noexcept;

  /// None: the record is not among them. Valid until the next add() or clear().
  const IdEntry* find(const RecordId& id) const;
  /// Its bytes, valid until the next call. None: none that was added begins there, or it is
  /// cheaper, or safer, to read it alone.
  std::optional<std::string_view> version(const IdEntry& present);

 private:
  struct Part {
    std::uint64_t begin = 0;  ///< The place of its bytes.
    std::string bytes;
    bool has(const IdEntry& version) const noexcept {
      return version.place >= begin && version.place + version.size <= begin + bytes.size();
    }
  };
  bool read_on_from(std::uint64_t place, Part& into);

  Database& db_;
  std::unordered_map<RecordId, IdEntry, IdHash> entries_;
  std::map<std::uint64_t, std::uint32_t> sizes_;  ///< By place.
  // Records of as many retentions become due in turn, each in files of its time.
  std::array<Part, 4> parts_;
  std::size_t oldest_ = 0;
};

}  // namespace idem::segments
