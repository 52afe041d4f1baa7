#include "gateway/keyed/replay_cache.hpp"

#include "core/fingerprint/method_override.hpp"
#include "gateway/forward.hpp"

#include <algorithm>
#include <cstring>

namespace idem::gateway {
namespace {

std::size_t bytes_of(const WireAnswer& answer) noexcept {
  std::size_t bytes = limits::replay_cache_entry_bytes + answer.body_bytes().size();
  for (const Field& field : answer.headers) {
    bytes += sizeof field + field.name.size() + field.value.size();
  }
  return bytes;
}

}  // namespace

std::optional<MemoryName::Bytes> RequestName::of(const http::ServerStream& client,
                                                 const GatewaySettings& settings,
                                                 const Route& route, std::string_view scope) {
  const auto body = client.whole_body_here();
  if (!body) return std::nullopt;
  const http::RequestHead& head = client.head();
  const auto counts = [&](const http::FieldView& field) {
    return field.known == http::FieldName::content_type ||
           http::same_name(field.name, "Content-Encoding") ||
           is_like_key_field(field.name, settings) || counts_always(field.name) ||
           MethodOverride::is_field(field.name) ||
           std::ranges::any_of(route.fingerprint.headers, [&](const std::string& name) {
             return http::same_name(field.name, name);
           });
  };
  name_.begin();
  name_.add_number(epoch_);
  name_.add(scope);
  name_.add(head.method);
  name_.add(head.origin_form);
  name_.add(*body);
  for (const http::FieldView& field : head.fields) {
    if (!counts(field)) continue;
    name_.add(field.name);
    name_.add(field.value);
  }
  return name_.finish();
}

std::size_t ReplayCache::Hash::operator()(const Name& name) const noexcept {
  std::size_t hash = 0;
  std::memcpy(&hash, name.data(), sizeof hash);
  return hash;
}

const ReplayCache::Kept* ReplayCache::find(const Name& name, Millis now) {
  auto found = young_.find(name);
  if (found == young_.end()) {
    auto node = old_.extract(name);
    if (!node) return nullptr;
    const std::size_t bytes = bytes_of(*node.mapped().answer);
    make_room();
    young_bytes_ += bytes;
    found = young_.insert(std::move(node)).position;
  }
  return now < found->second.until ? &found->second : nullptr;
}

void ReplayCache::put(const Name& name, Kept kept) {
  const std::size_t bytes = bytes_of(*kept.answer);
  if (kept.answer->status >= 500 || bytes > limits::replay_cache_answer_bytes_max) return;
  make_room();
  old_.erase(name);
  const auto [place, is_new] = young_.try_emplace(name);
  if (!is_new) young_bytes_ -= bytes_of(*place->second.answer);
  young_bytes_ += bytes;
  place->second = std::move(kept);
}

void ReplayCache::clear() noexcept {
  young_.clear();
  old_.clear();
  young_bytes_ = 0;
}

void ReplayCache::make_room() {
  if (young_bytes_ < bytes_max_ / 2) return;
  old_.clear();
  old_.swap(young_);
  young_bytes_ = 0;
}

}  // namespace idem::gateway
