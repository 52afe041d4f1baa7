#pragma once

#include <idem/record.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What was observed on routes with `enforce: shadow`.
namespace idem::metrics {

/// What enforcement would have done with a request. Each observed request has one.
enum class Shadowed : std::uint8_t {
  first,          ///< Sent to the upstream, as the first one or behind a released attempt.
  duplicate,      ///< Answered from the record.
  not_kept,       ///< 409: completed, and the answer's body not kept.
  misuse,         ///< 422
  missing_key,    ///< 400
  bad_key,        ///< 400: its form or its time.
  missing_scope,  ///< 401
  refused,        ///< For another reason, such as a body above the limit.
  race,           ///< Met a running attempt: 409, or it would have waited.
  unknown_retry,  ///< 409: it is not known whether the first one ran.
  expired,        ///< 410
  not_observed,   ///< It is not known.
};
inline constexpr std::size_t shadowed_count = 12;
std::string_view name_of(Shadowed decision) noexcept;

/// Why there is no decision.
enum class NotObserved : std::uint8_t {
  busy,        ///< Too many observations at that time.
  memory,      ///< No room for a copy of the request.
  upload,      ///< The client, or the upstream, broke off the request.
  not_sent,    ///< The upstream could not be reached before the request was whole.
  store,       ///< The store did not answer, or refused.
  store_slow,  ///< It answered too late to say anything about the moment of the request.
};
inline constexpr std::size_t not_observed_count = 6;
std::string_view name_of(NotObserved reason) noexcept;

struct ShadowCounts {
  std::array<std::uint64_t, shadowed_count> by_decision{};
  /// Of `first`: attempts whose outcome would be unknown.
  std::uint64_t unknown = 0;

  std::uint64_t of(Shadowed decision) const noexcept {
    return by_decision[static_cast<std::size_t>(decision)];
  }
  std::uint64_t requests() const noexcept;
};

/// One request, for the table. Never a key's bytes.
struct ShadowSeen {
  Shadowed decision = Shadowed::not_observed;
  NotObserved reason = NotObserved::busy;  ///< Of `not_observed`.
  std::string_view scope{};                ///< Empty: not known.
  std::string_view client{};
  std::optional<RecordId> id{};
  std::string_view method{};
  std::string_view path{};  ///< Without the query.
  std::size_t key_bytes = 0;
  std::string_view why{};  ///< The code of the problem that enforcement would have answered with.
};

/// A request of one of the report's kinds.
struct ShadowExample {
  std::chrono::system_clock::time_point at{};
  std::string scope, client, ref, method, path, why;
  std::size_t key_bytes = 0;
};

struct ShadowReport {
  struct Client {
    std::string name;
    ShadowCounts counts;
  };
  struct Tenant {
    std::string scope;
    ShadowCounts counts;
    std::vector<Client> clients;  ///< Those with most requests first.
  };
  struct Examples {
    std::string_view kind;  ///< Of Shadowed, or "unknown".
    std::vector<ShadowExample> newest;
  };
  struct Route {
    std::string name;
    std::chrono::system_clock::time_point since{};
    bool in_shadow = false;  ///< By the settings of today.
    bool waits = false;      ///< A duplicate of a running attempt would wait, not get a 409.
    ShadowCounts counts;
    std::array<std::uint64_t, not_observed_count> not_observed{};
    std::uint64_t not_settled = 0;  ///< Attempts whose end the store did not take.
    std::vector<Tenant> tenants;    ///< Those with most requests first.
    std::vector<Examples> examples;
  };
  std::chrono::system_clock::time_point since{};
  std::size_t under_way = 0;  ///< Requests without a decision yet.
  std::vector<Route> routes;
};

/// Counts them in memory, within bounds: tenants, clients and routes beyond these share the row
/// "other". Safe from any thread.
class Shadow {
 public:
  /// The routes that are in shadow from now on; the counts of the others stay.
  struct Watched {
    std::string route;
    bool waits = false;
  };
  void watch(const std::vector<Watched>& routes);

  void seen(const std::string& route, const ShadowSeen& request);
  /// The attempt of a request that was seen as `first` ended, and enforcement would not know how.
  void ended_unknown(const std::string& route, const ShadowSeen& request);
  void not_settled(const std::string& route);

  struct Counted {
    std::string route;
    ShadowCounts counts;
    std::uint64_t not_settled = 0;
  };
  std::vector<Counted> counted() const;
  /// `route`, where given, alone. `under_way` is left to the caller.
  ShadowReport report(const std::optional<std::string>& route = std::nullopt) const;

 private:
  static constexpr std::size_t kinds = shadowed_count + 1;  ///< The last one: unknown.
  using Clients = std::map<std::string, ShadowCounts, std::less<>>;
  struct Tenant {
    ShadowCounts counts;
    Clients clients;
  };
  struct Row {
    std::chrono::system_clock::time_point since{};
    bool in_shadow = false;
    bool waits = false;
    ShadowCounts counts;
    std::array<std::uint64_t, not_observed_count> not_observed{};
    std::uint64_t not_settled = 0;
    std::map<std::string, Tenant, std::less<>> tenants;
    std::array<std::deque<ShadowExample>, kinds> examples;
  };

  Row& row_of(const std::string& route);
  ShadowCounts& tenant_of(Row& row, std::string_view scope, std::string_view client,
                          ShadowCounts*& of_client);
  static void add_example(Row& row, std::size_t kind, const ShadowSeen& request);
  static ShadowReport::Route shown(const std::string& name, const Row& row);

  mutable std::mutex mutex_;
  const std::chrono::system_clock::time_point since_ = std::chrono::system_clock::now();
  std::map<std::string, Row, std::less<>> rows_;
  std::size_t rows_used_ = 0;  ///< Of tenants and clients, in all.
};

}  // namespace idem::metrics
