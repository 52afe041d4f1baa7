#include "gateway/scope_shares.hpp"

#include <idem/assert.hpp>
#include <idem/limits.hpp>

namespace idem::gateway {

bool ScopeShares::take(std::string_view scope, std::size_t amount) {
  const std::size_t free = taken_ < places_ ? places_ - taken_ : 0;
  const std::size_t has = scope.empty() ? 0 : taken_by(scope);
  if (has + amount > free) return false;
  take_anyhow(scope, amount);
  return true;
}

void ScopeShares::take_anyhow(std::string_view scope, std::size_t amount) {
  const auto found = by_scope_.find(scope);
  std::size_t& mine = found != by_scope_.end() ? found->second : by_scope_[std::string(scope)];
  mine += amount;
  taken_ += amount;
}

void ScopeShares::give_back(std::string_view scope, std::size_t amount) {
  const auto found = by_scope_.find(scope);
  IDEM_ASSERT(found != by_scope_.end() && found->second >= amount && taken_ >= amount);
  found->second -= amount;
  taken_ -= amount;
  if (found->second == 0 && by_scope_.size() > limits::scope_rooms_max) by_scope_.erase(found);
}

ScopeShares::Held ScopeShares::hold(std::string_view scope) {
  const auto found = by_scope_.find(scope);
  const std::size_t free = taken_ < places_ ? places_ - taken_ : 0;
  const std::size_t has = found == by_scope_.end() || scope.empty() ? 0 : found->second;
  if (has + 1 > free) return nullptr;
  auto& mine = found != by_scope_.end() ? *found : *by_scope_.emplace(scope, 0).first;
  ++mine.second;
  ++taken_;
  return &mine;
}

void ScopeShares::let_go(Held held) {
  IDEM_ASSERT(held->second > 0 && taken_ > 0);
  --taken_;
  if (--held->second > 0 || by_scope_.size() <= limits::scope_rooms_max) return;
  by_scope_.erase(by_scope_.find(held->first));
}

std::size_t ScopeShares::taken_by(std::string_view scope) const {
  const auto found = by_scope_.find(scope);
  return found == by_scope_.end() ? 0 : found->second;
}

}  // namespace idem::gateway
