#pragma once

#include "http/server.hpp"
#include "metrics/registry.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace idem::admin {

/// What the admin API stands on. All that is referred to must outlive it.
struct AdminParts {
  Loop& loop;
  Store& store;
  http::SpillSpace& spill;
  metrics::Registry& registry;
  const std::atomic<bool>& draining;
  LogSink log;
  /// Everything of Gauges but the census; asked on the loop's thread.
  std::function<metrics::Gauges()> gauges;
  /// Gauges say whether the store answers; otherwise only the census tells.
  bool watches_store = true;
  std::function<std::expected<Millis, std::string>(const std::string&)> parse_duration;
  /// An operation, and the others under which its records may lie; asked on the loop's thread.
  std::function<std::vector<std::string>(const std::string&)> naming_parts;
  /// Names besides loopback under which this listener may be addressed.
  std::vector<std::string> hosts{};
  Millis evidence_grace = limits::evidence_grace_default;
  /// Who is asked about this record; empty: nobody. On the loop's thread.
  std::function<std::string(const Record&)> provider_of = [](const Record& record) {
    return record.provider;
  };
};

/// What the operator's listener serves (docs/operations.md): /livez, /readyz, /metrics,
/// /v1/status, the records under /v1/keys and the messages. It asks nobody who they are: whoever
/// reaches the listener is an operator. So requests whose Host is neither loopback nor configured
/// are refused (DNS rebinding), and changes need a media type that no web page can send unasked.
/// Serves on its loop's thread.
std::unique_ptr<http::Service> make_admin(AdminParts parts);

}  // namespace idem::admin
