#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace idem::metrics {

/// Statuses with their own time series: those of RFC 9110 and its registry that servers send. The
/// others of a hundred share one, such as "4xx".
inline constexpr std::array statuses{
    101, 200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 307, 308, 400, 401, 402,
    403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421, 422,
    423, 424, 425, 426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 507, 508, 511};
/// After them: "none", for a client that got no answer, and "1xx" to "5xx".
inline constexpr std::size_t status_places = statuses.size() + 6;

/// The place that counts answers of this status. Status 0: there was no answer.
std::size_t place_of_status(int status) noexcept;
/// "201", "none", "4xx".
std::string status_label(std::size_t place);
/// Whether answers of this place are 5xx.
bool is_server_error(std::size_t place) noexcept;
/// Whether each route has a series of this status from the start: statuses of the gateway itself
/// and usual ones of upstreams.
bool is_usual(std::size_t place) noexcept;

/// The routes with their own time series: the first limits::metric_routes_max of all configurations
/// of this process. A place never changes, so no counter goes back. Safe from any thread.
class Routes {
 public:
  /// The place that counts requests of the route with this label. 0: all other routes, and requests
  /// without a route.
  std::size_t place_of(std::string_view label);
  /// The labels by place.
  std::vector<std::string> labels() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> labels_{"other"};
};

}  // namespace idem::metrics
