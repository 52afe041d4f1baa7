#pragma once

#include "gateway/route.hpp"

#include <map>
#include <optional>
#include <string>
#include <unordered_map>

namespace idem::gateway {

/// Counts the places in which stored requests run, by route and scope, and how often each request
/// was released lately. One thread.
class DispatchPlaces {
 public:
  std::size_t taken() const noexcept { return taken_; }
  /// False: its route, or its tenant in that route, has all its places.
  bool take(const Route& route, const std::string& scope);
  /// How many places its tenant has in its route; none where take() would be refused.
  std::optional<std::size_t> taken_by(const Route& route, const std::string& scope) const;
  void give_back(const Route& route, const std::string& scope);

  /// How long this request rests if it is released now; `dice` from 0 to 1.
  Millis rest(const RecordId& id, double dice) const;
  void released(const RecordId& id);
  void ended(const RecordId& id) { releases_.erase(key_of(id)); }

  /// Stays the same over a reload.
  static std::string name_of(const Route& route);

 private:
  struct Taken {
    std::size_t all = 0;
    std::unordered_map<std::string, std::size_t> by_scope;
  };
  static std::string key_of(const RecordId& id);

  std::size_t taken_ = 0;
  std::map<std::string, Taken> routes_;
  std::unordered_map<std::string, int> releases_;
};

}  // namespace idem::gateway
