#pragma once

#include "core/exchange/problem.hpp"
#include "gateway/scope_shares.hpp"

#include <idem/limits.hpp>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace idem::gateway {

/// The bodies of large stored answers that are being sent to clients, over all loops: one copy of
/// each, however many clients get it and however slowly they read, within `bytes_max` for all
/// together. A scope has its share of that. Safe from any thread; must be owned by a shared_ptr.
class AnswersUnderWay : public std::enable_shared_from_this<AnswersUnderWay> {
 public:
  explicit AnswersUnderWay(std::size_t bytes_max = limits::answers_under_way_bytes)
      : shares_(bytes_max) {}

  /// Replaces the answer's body by the one copy, which is counted until the last of those answers
  /// goes. False: there is no room, and the answer is unchanged. `scope`: whose share it uses;
  /// empty: only the room for all limits it.
  bool admit(const RecordId& id, const std::string& scope, WireAnswer& answer);
  /// The same for an answer that cannot be asked for again: counted, never refused.
  void admit_anyhow(const RecordId& id, const std::string& scope, WireAnswer& answer);

 private:
  /// One body.
  struct Copy {
    ~Copy();
    std::shared_ptr<AnswersUnderWay> owner;
    RecordId id;
    std::string scope;
    std::shared_ptr<const std::string> bytes;
  };
  struct HashId {
    std::size_t operator()(const RecordId& id) const noexcept {
      std::size_t hash = 0;  // An id is a keyed digest: any part of it is as good as random.
      std::memcpy(&hash, id.bytes.data(), sizeof hash);
      return hash;
    }
  };

  bool admit(const RecordId& id, const std::string& scope, WireAnswer& answer, bool may_refuse);
  std::shared_ptr<const Copy> find(const RecordId& id);

  std::mutex mutex_;
  ScopeShares shares_;
  std::unordered_map<RecordId, std::weak_ptr<const Copy>, HashId> copies_;  ///< The latest of each.
};

}  // namespace idem::gateway
