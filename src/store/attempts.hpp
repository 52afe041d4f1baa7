#pragma once

#include "store/record_rows.hpp"

#include <unordered_map>

namespace idem {

/// The records of attempts that run in this process, as last written, so that an owner's verb need
/// not read them first. They prove nothing: a step over one counts only if the server still has
/// that version.
class Attempts {
 public:
  struct Kept {
    RowVersion version{};
    Record record;
  };

  const Kept* find(const RecordId& id) const {
    const auto found = kept_.find(id);
    return found == kept_.end() ? nullptr : &found->second;
  }
  void keep(const RowVersion& version, const Record& record);
  void forget(const RecordId& id) { kept_.erase(id); }

 private:
  std::unordered_map<RecordId, Kept, IdHash> kept_;
};

}  // namespace idem
