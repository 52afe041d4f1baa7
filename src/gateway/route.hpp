#pragma once

#include "core/policy.hpp"

#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>
#include <idem/record.hpp>

#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace idem::gateway {

/// What a duplicate of a running attempt hears (protocol.md §7).
enum class Mode : std::uint8_t { conflict, wait, async };

/// A path with holes: `/v1/quotes/{id}` takes one segment there, `/v1/{rest...}` whatever follows.
/// Compared byte by byte with the path as it was sent (P3): nothing is decoded or cleaned first.
class PathPattern {
 public:
  /// The error says what is wrong and what to write.
  static std::expected<PathPattern, std::string> parse(std::string_view text);

  /// `path` without a query.
  bool matches(std::string_view path) const noexcept;
  /// True when this pattern matches every path that `other` does.
  bool covers(const PathPattern& other) const noexcept;
  const std::string& text() const noexcept { return text_; }

 private:
  struct Segment {
    std::string literal;
    bool any = false;
  };
  std::string text_;
  std::vector<Segment> segments_;
  bool open_end_ = false;
};

/// What is done with the requests that it matches. Without configuration there is one, the rest.
struct Route {
  std::string name;                   ///< The operation; empty: each METHOD and path is its own.
  std::vector<std::string> formerly;  ///< Operations under which older records may lie.
  std::vector<std::string> methods;   ///< Empty: all.
  PathPattern path;

  Mode mode = Mode::conflict;
  bool require_key = true;
  AnswerPolicy answers;
  FingerprintRule fingerprint;
  Millis upstream_timeout = limits::upstream_timeout_default;
  Millis lease = limits::lease_default;
  LeasePolicy lease_policy = LeasePolicy::unknown;
  Millis retention = limits::retention_default;
  Millis tombstone = limits::tombstone_default;
  Millis wait_max = limits::wait_default;
  std::size_t request_body_bytes_max = limits::request_body_bytes_default;
  std::size_t response_body_bytes_max = limits::response_body_bytes_default;
  /// False: that the work ran is recorded, and its answer's body is not (T37).
  bool store_body = true;
  /// Fields that are stored and replayed although §14 withholds them by default.
  std::vector<std::string> replay_fields;
  bool separate_dispatch_mark = false;

  /// True when nothing can reach `other` behind this route.
  bool covers(const Route& other) const noexcept;
  /// What a request's record is stored under.
  std::string operation(std::string_view method, std::string_view path_sent) const;
};

/// The routes in their order; the first that matches wins, and the last one matches everything.
class RouteTable {
 public:
  RouteTable() : RouteTable(std::vector<Route>{}, Route{}) {}
  RouteTable(std::vector<Route> routes, Route rest);

  const Route& find(std::string_view method, std::string_view path) const noexcept;
  const std::vector<Route>& all() const noexcept { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace idem::gateway
