#include "store/log/family.hpp"

namespace idem::segments {

std::string_view words_of(Family family) noexcept {
  switch (family) {
    case Family::meta:
      return "identity and settings";
    case Family::segments:
      return "counts of its files";
    case Family::due:
      return "lists of what is due";
    case Family::work:
      return "lists of open records";
    case Family::requests:
      return "stored requests";
    case Family::evidence:
      return "evidence";
    case Family::journals:
      return "journals";
    case Family::usage:
      return "usage of quotas";
  }
  return {};
}

std::string Families::text() const {
  std::string all;
  for (std::size_t i = 0; i < family_count; ++i) {
    const auto family = static_cast<Family>(i);
    if (!has(family)) continue;
    if (!all.empty()) all += ", ";
    all += words_of(family);
  }
  return all;
}

}  // namespace idem::segments
