#pragma once

#include "core/record/find_journals.hpp"
#include "core/trace/trace_context.hpp"
#include "gateway/gateway.hpp"
#include "loop/loop.hpp"

#include <idem/store.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::gateway {

/// A value by which a record is found: its digest, and what it is to the record.
struct Findable {
  FindName name{};
  std::string found_by;
};

/// Writes down which record has which value, beside the exchanges (core/record/find_journals.hpp):
/// an operator finds records by them. Nothing waits for it, and its failures are counted, not
/// reported: a value that is not written finds nothing, and its record is found by key and ref as
/// ever.
class SearchIndex {
 public:
  virtual ~SearchIndex() = default;

  /// For requests that begin from now on. Notes in the store which values are indexed, if that has
  /// changed. Safe from any thread.
  virtual void use(SharedSettings settings) = 0;

  /// Of a request. Nothing where `settings` have no search. Reads only what lies in memory; a body
  /// that is larger or no JSON is counted. Safe from any thread.
  virtual std::vector<Findable> in_request(const GatewaySettings& settings,
                                           const std::optional<TraceId>& trace,
                                           std::string_view body) = 0;
  /// Of a call that ends an attempt, or an order that does; of others nothing. Likewise.
  virtual std::vector<Findable> in_ending(const GatewaySettings& settings,
                                          const StoreCall& call) = 0;

  /// Of a request that is stored and waits: whether this is the first that is asked of the latest
  /// records that wait. A retry of it has a trace of its own, and retries without an end would be
  /// lines without an end. Safe from any thread.
  virtual bool is_new(const RecordId& pending) = 0;

  /// Queues the values of a record on this route. Never waits; what has no room is dropped and
  /// counted. Safe from any thread.
  virtual void add(const RecordId& id, const Route& route, std::vector<Findable> values) = 0;

  /// The store, for those who settle records by evidence: values of an answer that an order stores
  /// are queued, too. Lives as long as this.
  virtual Store& indexed() noexcept = 0;

  /// Nothing waits to be written. Safe from any thread.
  virtual bool drained() const noexcept = 0;
};

/// Whether a call that ends an attempt ended it: not if the store failed, or another one had.
inline bool has_ended(const StoreResult& result) noexcept {
  const auto* const reply = result ? std::get_if<OwnerReply>(&*result) : nullptr;
  return reply != nullptr && reply->verdict == Verdict::done;
}

/// On this loop, which does not run yet; `shared` must outlive it, and this the loop's run.
std::unique_ptr<SearchIndex> make_search_index(Loop& loop, GatewayShared& shared,
                                               SharedSettings settings);

}  // namespace idem::gateway
