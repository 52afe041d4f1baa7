#include "armed_faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "json_text.hpp"

namespace provider {

void ArmedFaults::arm(std::string list, std::string path, std::size_t count) {
  if (count > 0) armed_.push_back({std::move(list), std::move(path), count});
}

std::string ArmedFaults::take(std::string_view path) {
  const auto at = std::find_if(armed_.begin(), armed_.end(), [&](const Armed& armed) {
    const bool for_inbox = std::string_view(armed.path).starts_with("/inbox");
    return path.starts_with(armed.path) && for_inbox == (path == "/inbox");
  });
  if (at == armed_.end()) return {};
  if (--at->left > 0) return at->list;
  auto list = std::move(at->list);
  armed_.erase(at);
  return list;
}

std::string ArmedFaults::json() const {
  std::string all;
  for (const auto& armed : armed_) {
    all += fmt::format(R"({}{{"list":{},"path":{},"left":{}}})", all.empty() ? "" : ",",
                       in_quotes(armed.list), in_quotes(armed.path), armed.left);
  }
  return fmt::format(R"({{"armed":[{}]}})", all);
}

}  // namespace provider
