#pragma once

#include "store/redis/rows.hpp"

#include <cstring>
#include <unordered_map>

namespace idem::redis {

/// The records of attempts that run here, as they were written last, so that an owner's verb need
/// not read them first. They prove nothing: what is made over one counts only if the server finds
/// that version.
class Attempts {
 public:
  struct Kept {
    Version version{};
    Record record;
  };

  const Kept* find(const RecordId& id) const {
    const auto found = kept_.find(id);
    return found == kept_.end() ? nullptr : &found->second;
  }
  void keep(const Version& version, const Record& record);
  void forget(const RecordId& id) { kept_.erase(id); }

 private:
  struct Hash {
    std::size_t operator()(const RecordId& id) const noexcept {
      std::size_t hash = 0;  // The id is a digest.
      std::memcpy(&hash, id.bytes.data(), sizeof hash);
      return hash;
    }
  };
  std::unordered_map<RecordId, Kept, Hash> kept_;
};

}  // namespace idem::redis
