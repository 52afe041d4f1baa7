#pragma once

#include "metrics/shard.hpp"
#include "metrics/tenants.hpp"

#include <idem/outbox.hpp>

#include <deque>
#include <optional>

namespace idem::metrics {

/// What is not counted but asked for when somebody looks.
struct Gauges {
  std::optional<Census> census;  ///< None: the store could not be asked.
  std::size_t open_connections = 0;
  std::uint64_t refused_connections = 0;
  std::size_t unsettled_attempts = 0;
  bool store_answers = true;
  std::uint64_t store_calls_refused = 0;
  std::uint64_t damaged_askings = 0;
  std::optional<std::vector<MessageCount>> messages{};  ///< None: there is no outbox, or likewise.
};

/// All shards of a process. Outlives whoever counts.
class Registry {
 public:
  Registry(TenantLabel tenants, const Secret& secret) : tenants_(tenants, secret) {}

  /// For one thread to count in, for good. Safe from any thread.
  Shard& add_shard();
  Tenants& tenants() noexcept { return tenants_; }

  /// The Prometheus text format 0.0.4: the sum of all shards, and `gauges`. Safe from any thread.
  std::string exposition(const Gauges& gauges);

 private:
  std::mutex mutex_;
  std::deque<Shard> shards_;
  Tenants tenants_;
};

}  // namespace idem::metrics
