#include "metrics/routes.hpp"

#include <idem/worker_limits.hpp>

#include <algorithm>

namespace idem::metrics {
namespace {

constexpr std::size_t none_at = statuses.size();
constexpr int first_status = 100;
constexpr int status_end = 600;

constexpr auto places = [] {
  std::array<std::uint8_t, status_end - first_status> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<std::uint8_t>(none_at + 1 + i / 100);
  }
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    out[static_cast<std::size_t>(statuses[i] - first_status)] = static_cast<std::uint8_t>(i);
  }
  return out;
}();

}  // namespace

std::size_t place_of_status(int status) noexcept {
  if (status < first_status || status >= status_end) return none_at;
  return places[static_cast<std::size_t>(status - first_status)];
}

std::string status_label(std::size_t place) {
  if (place < statuses.size()) return std::to_string(statuses[place]);
  return place == none_at ? "none" : std::to_string(place - none_at) + "xx";
}

bool is_server_error(std::size_t place) noexcept {
  return place < statuses.size() ? statuses[place] >= 500 : place == status_places - 1;
}

bool is_usual(std::size_t place) noexcept {
  static constexpr std::array usual{200, 201, 202, 400, 401, 403, 404, 408, 409,
                                    410, 413, 422, 429, 500, 502, 503, 504};
  return place < statuses.size() && std::ranges::find(usual, statuses[place]) != usual.end();
}

std::size_t Routes::place_of(std::string_view label) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(labels_.begin() + 1, labels_.end(), label);
  if (found != labels_.end()) return static_cast<std::size_t>(found - labels_.begin());
  if (labels_.size() > limits::metric_routes_max) return 0;
  labels_.emplace_back(label);
  return labels_.size() - 1;
}

std::vector<std::string> Routes::labels() const {
  const std::lock_guard lock(mutex_);
  return labels_;
}

}  // namespace idem::metrics
