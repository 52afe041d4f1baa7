#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace idem::gateway {

/// Who has how much of something that all scopes share. A scope may have as much as would still be
/// free beside it: alone it has half, of two each has a third, and whoever comes next finds as much
/// free as any other has. So one that takes all it can get locks nobody out, and there is no number
/// to set. An empty scope shares with none, and may have all. One thread at a time.
class ScopeShares {
 public:
  explicit ScopeShares(std::size_t places) noexcept : places_(places) {}

  /// False: that much is not free, or more than this scope's share.
  bool take(std::string_view scope, std::size_t amount = 1);
  /// The same for what cannot be refused any more: it counts, and leaves less to others.
  void take_anyhow(std::string_view scope, std::size_t amount);
  /// What one of the two took.
  void give_back(std::string_view scope, std::size_t amount = 1);

  std::size_t taken() const noexcept { return taken_; }
  std::size_t taken_by(std::string_view scope) const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>()(text);
    }
  };

  const std::size_t places_;
  std::size_t taken_ = 0;
  /// Some that have nothing any more stay, so that who comes and goes costs no allocation.
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> by_scope_;
};

}  // namespace idem::gateway
