#include "deduplication.hpp"

namespace provider {

std::optional<Reply> Deduplication::arrive(const std::string& key, std::uint64_t digest, Time now) {
  if (window.count() == 0 || key.empty()) return std::nullopt;
  auto at = entries_.find(key);
  if (at != entries_.end() && !at->second.under_way && now >= at->second.until) {
    entries_.erase(at);
    at = entries_.end();
  }
  if (at == entries_.end()) {
    entries_[key].digest = digest;
    return std::nullopt;
  }
  const auto& entry = at->second;
  if (entry.digest != digest) return json_reply(422, R"({"error":"idempotency_key_reused"})");
  if (entry.under_way) return json_reply(409, R"({"error":"idempotency_key_in_use"})");
  auto replay = *entry.kept;
  replay.fields += "Idempotent-Replayed: true\r\n";
  return replay;
}

void Deduplication::keep(const std::string& key, const Reply& reply, Time now) {
  const auto at = entries_.find(key);
  if (at == entries_.end() || !at->second.under_way) return;
  at->second.kept = reply;
  at->second.until = now + window;
}

void Deduplication::finished(const std::string& key) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  at->second.under_way = false;
  if (!at->second.kept) entries_.erase(at);
}

void Deduplication::clear() {
  std::erase_if(entries_, [](const auto& entry) { return !entry.second.under_way; });
  for (auto& [key, entry] : entries_) entry.kept.reset();
}

}  // namespace provider
