#include "armed_faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "json_text.hpp"

namespace provider {
namespace {

bool fits(std::string_view armed_for, std::string_view path) {
  return path.starts_with(armed_for) && armed_for.starts_with("/inbox") == (path == "/inbox");
}

}  // namespace

void ArmedFaults::arm(std::string list, std::string path, std::size_t count) {
  if (count > 0) armed_.push_back({std::move(list), std::move(path), count});
}

void ArmedFaults::arm_by_chance(std::string list, std::string path, double chance,
                                std::uint64_t seed) {
  likely_.push_back({std::move(list), std::move(path), chance, std::mt19937_64(seed)});
}

void ArmedFaults::disarm() {
  armed_.clear();
  likely_.clear();
}

std::string ArmedFaults::take(std::string_view path) {
  const auto at = std::find_if(armed_.begin(), armed_.end(),
                               [&](const Armed& armed) { return fits(armed.path, path); });
  if (at != armed_.end()) {
    if (--at->left > 0) return at->list;
    auto list = std::move(at->list);
    armed_.erase(at);
    return list;
  }
  std::string lists;
  for (auto& likely : likely_) {
    if (!fits(likely.path, path)) continue;
    if (!std::bernoulli_distribution(likely.chance)(likely.dice)) continue;
    ++likely.taken;
    lists += (lists.empty() ? "" : ",") + likely.list;
  }
  return lists;
}

std::string ArmedFaults::json() const {
  std::string all;
  const auto add = [&](const std::string& one) { all += (all.empty() ? "" : ",") + one; };
  for (const auto& armed : armed_) {
    add(fmt::format(R"({{"list":{},"path":{},"left":{}}})", in_quotes(armed.list),
                    in_quotes(armed.path), armed.left));
  }
  for (const auto& likely : likely_) {
    add(fmt::format(R"({{"list":{},"path":{},"chance":{},"taken":{}}})", in_quotes(likely.list),
                    in_quotes(likely.path), likely.chance, likely.taken));
  }
  return fmt::format(R"({{"armed":[{}]}})", all);
}

}  // namespace provider
