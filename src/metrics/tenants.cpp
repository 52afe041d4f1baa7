#include "metrics/tenants.hpp"

#include "core/bytes/utf8.hpp"

#include <functional>

namespace idem::metrics {
namespace {

// Digits of a digest: 2^48 values distinguish 64 tenants, and are short enough to read.
constexpr std::size_t label_digits = 12;

}  // namespace

std::size_t Tenants::place_of(std::string_view scope) {
  if (kind_ == TenantLabel::off) return 0;
  const std::size_t hash = std::hash<std::string_view>()(scope);
  if (const auto place = find(hash); place != 0) return place;
  if (count() == tenants_.size()) return 0;
  std::string label = label_of(scope);
  const std::lock_guard lock(mutex_);
  if (const auto place = find(hash); place != 0) return place;
  const std::size_t place = count_.load(std::memory_order_relaxed);
  if (place == tenants_.size()) return 0;
  tenants_[place] = {hash, std::move(label)};
  count_.store(place + 1, std::memory_order_release);
  return place;
}

std::size_t Tenants::find(std::size_t hash) const noexcept {
  const std::size_t end = count();
  for (std::size_t place = 1; place < end; ++place) {
    if (tenants_[place].hash == hash) return place;
  }
  return 0;
}

std::string Tenants::label_of(std::string_view scope) const {
  const bool is_reserved = scope == others;
  if (kind_ == TenantLabel::name && !is_reserved && is_utf8(scope)) return std::string(scope);
  // The prefix keeps it different from digests of credentials, which are scopes themselves.
  return credential_digest(secret_, "metrics tenant\n" + std::string(scope))
      .substr(0, label_digits);
}

}  // namespace idem::metrics
