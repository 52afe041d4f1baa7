#pragma once

#include "metrics/not_indexed.hpp"
#include "metrics/quota_refusals.hpp"
#include "metrics/retries.hpp"
#include "metrics/shadow.hpp"
#include "metrics/shard.hpp"
#include "metrics/tenants.hpp"
#include "metrics/text.hpp"

#include <idem/outbox.hpp>

#include <atomic>
#include <deque>
#include <limits>
#include <memory>
#include <optional>

namespace idem::metrics {

struct Totals;

/// Values that are read at the time of an exposition, not counted.
struct Gauges {
  std::optional<Census> census;  ///< None: the store did not answer.
  std::size_t open_connections = 0;
  std::uint64_t refused_connections = 0;
  std::uint64_t log_lines_dropped = 0;
  std::size_t waiting_requests = 0;
  std::size_t unsettled_attempts = 0;
  bool store_answers = true;
  std::uint64_t store_calls_refused = 0;
  std::uint64_t damaged_askings = 0;
  std::optional<Millis> loop_stalled{};  ///< None: there are no loops to watch.
  std::optional<std::vector<MessageCount>>
      messages{};  ///< None: there is no outbox, or it did not answer.
  /// Configured destinations, which have series from the start.
  std::vector<std::string> destinations{};
};

/// All shards of a process. Outlives all threads that count.
class Registry {
 public:
  Registry(TenantLabel tenants, const Secret& secret) : tenants_(tenants, secret) {}

  /// A shard for one thread; it lives as long as this. Safe from any thread.
  Shard& add_shard();
  Tenants& tenants() noexcept { return tenants_; }
  Routes& routes() noexcept { return routes_; }
  Shadow& shadow() noexcept { return shadow_; }
  QuotaRefusals& quota_refusals() noexcept { return quota_refusals_; }
  Retries& retries() noexcept { return retries_; }
  SearchCounts& search() noexcept { return search_; }

  /// Adds the series and the status of a provider. Call it before the first exposition.
  void add_provider(std::string name, std::shared_ptr<const ProviderCounts> counts);
  void add_upstream(bool with_authorizer) noexcept {
    has_upstream_ = true;
    has_authorizer_ = with_authorizer;
  }
  /// The version as `idem version` prints it.
  void version(std::string version) { version_ = std::move(version); }

  struct NamedProvider {
    std::string name;
    std::shared_ptr<const ProviderCounts> counts;
  };
  const std::vector<NamedProvider>& providers() const noexcept { return providers_; }
  const std::string& version() const noexcept { return version_; }
  bool has_upstream() const noexcept { return has_upstream_; }
  bool has_authorizer() const noexcept { return has_authorizer_; }
  Availability& upstream() noexcept { return upstream_; }
  Availability& authorizer() noexcept { return authorizer_; }
  /// As calls for clients' requests see it; whether it counts as down is the circuit breaker's.
  Availability& store() noexcept { return store_; }

  /// How long, at most, an answer or tombstone has been due for the reaper. None: another process
  /// reaps. Safe from any thread.
  std::optional<std::chrono::duration<double>> reap_age();

  struct Disk {
    explicit Disk(std::string what) : of(std::move(what)) {}
    const std::string of;
    std::atomic<std::int64_t> free_bytes{-1};  ///< Less than 0: nobody has looked yet.
  };
  /// Adds the series of a disk. It lives as long as this. Safe from any thread.
  Disk& add_disk(std::string of);
  /// This machine's clock, as the watch of the machine sees it.
  struct Clock {
    static constexpr Millis::rep not_known = std::numeric_limits<Millis::rep>::min();
    std::atomic<bool> was_seen{false};
    std::atomic<bool> is_synchronised{false};   ///< As the kernel regards it.
    std::atomic<Millis::rep> ahead{not_known};  ///< How far it is before the store's.
  };
  const std::shared_ptr<Clock>& clock() const noexcept { return clock_; }

  /// Adds the series of traces. Call it before the first exposition.
  void add_traces(std::shared_ptr<const SpanCounts> counts) { spans_ = std::move(counts); }

  /// What samples need of the sum of all shards. Safe from any thread.
  Totals totals();

  /// The sum of all shards, and `gauges`. Safe from any thread.
  std::string exposition(const Gauges& gauges, Format format = Format::prometheus);

 private:
  std::mutex mutex_;
  std::uint64_t leases_ended_ = 0;  ///< In the store's last census.
  std::deque<Shard> shards_;
  Tenants tenants_;
  Routes routes_;
  Shadow shadow_;
  QuotaRefusals quota_refusals_;
  Retries retries_;
  SearchCounts search_;
  // Written before the listeners open.
  std::string version_;
  std::vector<NamedProvider> providers_;
  std::shared_ptr<const SpanCounts> spans_;
  bool has_upstream_ = false;
  bool has_authorizer_ = false;
  Availability upstream_;
  Availability authorizer_;
  Availability store_;
  std::deque<Disk> disks_;
  const std::shared_ptr<Clock> clock_ = std::make_shared<Clock>();
  MonotonicTime began_ = MonotonicClock::now();
};

}  // namespace idem::metrics
