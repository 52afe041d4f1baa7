#include "ledger.hpp"

#include <fmt/format.h>

#include <utility>

#include "json_text.hpp"

namespace provider {

bool is_refund(std::string_view target) {
  constexpr std::string_view path = "/refunds";
  if (!target.starts_with(path)) return false;
  return target.size() == path.size() || target[path.size()] == '/' || target[path.size()] == '?';
}

void Ledger::arrived(std::string_view key) {
  ++arrivals_;
  auto entry = keys_.find(key);
  if (entry == keys_.end()) entry = keys_.emplace(std::string(key), PerKey{}).first;
  ++entry->second.arrivals;
}

void Ledger::charge(Effect effect) {
  keys_[effect.key].effects.push_back(next());
  lines_.push_back(static_cast<std::int64_t>(effects_.size()));
  effects_.push_back(std::move(effect));
}

void Ledger::decline(Effect effect) {
  lines_.push_back(-1 - static_cast<std::int64_t>(declined_.size()));
  declined_.push_back(std::move(effect));
}

Ledger::Line Ledger::line(std::size_t index) const {
  if (index >= lines_.size()) return {};
  const std::int64_t at = lines_[index];
  if (at >= 0) {
    const auto number = static_cast<std::size_t>(at);
    return {fmt::format("ch_{}", first_ + number), &effects_[number], true};
  }
  const auto number = static_cast<std::size_t>(-1 - at);
  return {fmt::format("de_{}", number + 1), &declined_[number], false};
}

const Effect* Ledger::find(std::uint64_t number) const {
  if (number < first_ || number >= next()) return nullptr;
  return &effects_[number - first_];
}

void Ledger::clear() {
  first_ = next();
  arrivals_ = 0;
  effects_.clear();
  declined_.clear();
  lines_.clear();
  keys_.clear();
}

std::string Ledger::answers(const Query& query) const {
  const auto fits = [](const std::string& asked, const std::string& has) {
    return asked.empty() || asked == has;
  };
  std::string all;
  for (const auto& effect : effects_) {
    if (is_refund(effect.target) != query.refunds || effect.made > query.until) continue;
    if (!fits(query.key, effect.key) || !fits(query.reference, effect.reference)) continue;
    if (!fits(query.operation, effect.operation)) continue;
    all += (all.empty() ? "" : ",") + effect.answer;
  }
  return "[" + all + "]";
}

std::string Ledger::json_of(const PerKey& entry, bool with_calls) const {
  std::string fences;
  std::string calls;
  for (const auto number : entry.effects) {
    const Effect* effect = find(number);
    if (effect == nullptr) continue;
    const char* comma = fences.empty() ? "" : ",";
    fences += comma + in_quotes(effect->fence);
    if (!with_calls) continue;
    calls += fmt::format(
        R"({}{{"effect":{},"method":{},"target":{},"operation":{},"fence":{},"attempt":{},)"
        R"("body_bytes":{},"body_digest":"{:016x}"}})",
        comma, number, in_quotes(effect->method), in_quotes(effect->target),
        in_quotes(effect->operation), in_quotes(effect->fence), in_quotes(effect->attempt),
        effect->body_bytes, effect->body_digest);
  }
  auto out = fmt::format(R"({{"effects":{},"arrivals":{},"fences":[{}])", entry.effects.size(),
                         entry.arrivals, fences);
  if (with_calls) out += fmt::format(R"(,"calls":[{}])", calls);
  return out + "}";
}

std::string Ledger::json_of(std::string_view key) const {
  const auto entry = keys_.find(key);
  return json_of(entry == keys_.end() ? PerKey{} : entry->second, true);
}

std::string Ledger::json() const {
  auto out = fmt::format(R"({{"effects":{},"arrivals":{},"keys":{{)", effects_.size(), arrivals_);
  const char* comma = "";
  for (const auto& [key, entry] : keys_) {
    out += comma + in_quotes(key) + ":" + json_of(entry, false);
    comma = ",";
  }
  return out + "}}";
}

std::string Ledger::text() const {
  auto out = fmt::format("{:<40} {:>8} {:>8}  fences\n", "key", "arrivals", "effects");
  for (const auto& [key, entry] : keys_) {
    out += fmt::format("{:<40} {:>8} {:>8} ", key.empty() ? "(none)" : key, entry.arrivals,
                       entry.effects.size());
    for (const auto number : entry.effects) out += " " + find(number)->fence;
    out += '\n';
  }
  return out + summary() + '\n';
}

std::string Ledger::summary() const {
  std::size_t repeated = 0;
  for (const auto& [key, entry] : keys_) {
    if (!key.empty() && entry.effects.size() > 1) ++repeated;
  }
  return fmt::format("ledger effects={} arrivals={} keys={} keys_with_more_than_one_effect={}",
                     effects_.size(), arrivals_, keys_.size(), repeated);
}

}  // namespace provider
