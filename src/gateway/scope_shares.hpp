#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace idem::gateway {

/// Divides a resource among scopes. A scope may have as much as would still be free beside it:
/// alone it has half, of two each has a third, and the next scope finds as much free as each other
/// has. So a greedy scope locks none out, and there is no number to configure. An empty scope has
/// no share and may have all. One thread at a time.
class ScopeShares {
 public:
  explicit ScopeShares(std::size_t places) noexcept : places_(places) {}

  /// False: that much is not free, or more than this scope's share.
  bool take(std::string_view scope, std::size_t amount = 1);
  /// The same for an amount that cannot be refused any more: it leaves less to others.
  void take_anyhow(std::string_view scope, std::size_t amount);
  /// Gives back what take() or take_anyhow() took.
  void give_back(std::string_view scope, std::size_t amount = 1);

  /// One of what take() takes, found once for both ends: the path of every request.
  using Held = std::pair<const std::string, std::size_t>*;
  /// Null: it is not free, or more than this scope's share.
  Held hold(std::string_view scope);
  void let_go(Held held);

  /// One of nobody's share, which spares its name, as long as few are taken in all: an eighth. One
  /// scope may have these besides its share, and still leaves as much to the next one.
  bool take_of_plenty() noexcept {
    if (taken_ >= places_ / 8) return false;
    ++taken_;
    return true;
  }
  void give_back_of_plenty() noexcept { --taken_; }

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
  /// Some empty entries stay, so that a scope which comes and goes costs no allocation.
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> by_scope_;
};

}  // namespace idem::gateway
