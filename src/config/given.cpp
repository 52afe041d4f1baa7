#include "config/given.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <tuple>

namespace idem::config {

std::string Place::text() const {
  if (!in_file()) return source;
  return source + ':' + std::to_string(line) + ':' + std::to_string(column);
}

void Complaints::add(const Place& place, std::string sentence) {
  all_.push_back({place, std::move(sentence)});
}

std::vector<std::string> Complaints::lines() const {
  auto sorted = all_;
  std::ranges::stable_sort(sorted, {}, [](const Complaint& complaint) {
    return std::tuple(complaint.place.line, complaint.place.column);
  });
  std::vector<std::string> lines;
  for (const auto& complaint : sorted) {
    if (lines.size() == limits::config_complaints_max) {
      lines.push_back("and " + std::to_string(sorted.size() - lines.size()) + " more");
      break;
    }
    lines.push_back(complaint.place.text() + ": " + complaint.sentence);
  }
  return lines;
}

}  // namespace idem::config
