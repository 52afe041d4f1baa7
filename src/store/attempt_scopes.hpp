#pragma once

#include <idem/limits.hpp>
#include <idem/record.hpp>

#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace idem {

/// The scopes of the attempts that this process was granted last: an owner's verb does not name its
/// scope. Bounded: who finds none asks the store. A record never changes its scope. Safe from any
/// thread.
class AttemptScopes {
 public:
  void put(const RecordId& id, const std::string& scope) {
    Part& part = part_of(id);
    const std::lock_guard lock(part.mutex);
    if (part.young.size() >= half_max) part.old = std::exchange(part.young, {});
    part.young.insert_or_assign(id, scope);
  }
  std::optional<std::string> find(const RecordId& id) const {
    const Part& part = part_of(id);
    const std::lock_guard lock(part.mutex);
    for (const auto* half : {&part.young, &part.old}) {
      if (const auto found = half->find(id); found != half->end()) return found->second;
    }
    return std::nullopt;
  }

 private:
  // Event loops rarely wait for one another here.
  static constexpr std::size_t parts = 16;
  static constexpr std::size_t half_max = limits::sealed_scopes_max / parts / 2;

  /// Ids are digests under a secret: nobody chooses where they lie.
  struct Hash {
    std::size_t operator()(const RecordId& id) const noexcept {
      std::size_t bits = 0;
      std::memcpy(&bits, id.bytes.data() + 1, sizeof bits);
      return bits;
    }
  };
  struct Part {
    mutable std::mutex mutex;
    std::unordered_map<RecordId, std::string, Hash> young;
    std::unordered_map<RecordId, std::string, Hash> old;
  };
  Part& part_of(const RecordId& id) { return parts_[id.bytes[0] % parts]; }
  const Part& part_of(const RecordId& id) const { return parts_[id.bytes[0] % parts]; }

  std::array<Part, parts> parts_;
};

}  // namespace idem
