#pragma once

#include <idem/worker_limits.hpp>

#include <array>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace idem::metrics {

/// Statuses with a time series of their own: those of RFC 9110 and its registry that a server
/// answers with. The others of a hundred share one, such as "4xx".
inline constexpr std::array statuses{
    101, 200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 307, 308, 400, 401, 402,
    403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422,
    423, 424, 425, 426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 507, 508, 511};
/// Behind them: "none", which stands for a client that got no answer, and "1xx" to "5xx".
inline constexpr std::size_t status_places = statuses.size() + 6;

/// Where an answer of this status is counted; 0: there was none.
std::size_t place_of_status(int status) noexcept;
/// "201", "none", "4xx".
std::string status_label(std::size_t place);
/// Statuses that have a series of each route from the start: what the gateway answers with by
/// itself, and what an upstream mostly does.
bool is_usual(std::size_t place) noexcept;

/// The routes that have a time series of their own: the first limits::metric_routes_max that any
/// configuration of this process had. A place never changes, so that no counter goes back. Safe
/// from any thread.
class Routes {
 public:
  /// Where to count requests of the route that is called so; 0 is the place of all others, and of
  /// what no route decided.
  std::size_t place_of(std::string_view label);
  /// By place.
  std::vector<std::string> labels() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> labels_{"other"};
};

}  // namespace idem::metrics
