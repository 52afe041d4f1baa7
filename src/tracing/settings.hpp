#pragma once

#include <idem/record.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace idem::tracing {

/// Which requests are recorded.
struct Sampling {
  /// A request with a valid traceparent is recorded if its caller recorded it. False: the ratio
  /// decides about all, so that no client can have its requests recorded.
  bool follows_parent = true;
  /// One in so many of the others.
  std::uint64_t one_in = 10;
};

/// Where the spans go, and under which name.
struct TraceSettings {
  /// With its path: "http://127.0.0.1:4318/v1/traces". Empty: nothing is traced.
  std::string url{};
  std::vector<Field> headers{};  ///< For its login.
  std::string ca_file{};         ///< PEM; empty: the system's authorities.
  std::string service = "idem";  ///< service.name
  Sampling sampling{};
};

}  // namespace idem::tracing
