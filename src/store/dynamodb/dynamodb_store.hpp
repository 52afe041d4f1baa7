#pragma once

#include <idem/open_store.hpp>

#include <expected>
#include <functional>
#include <memory>
#include <string>

namespace idem {

/// How long the nodes of a store wait for each other when its identity changes (a rotated secret,
/// other routes). All nodes of one store need the same.
struct DynamodbWaits {
  /// How long a node reserves by an identity after it has asked for it.
  Millis identity_lease{5'000};
  /// How long a change waits before it reads the records: longer than `identity_lease` and the
  /// longest way of a request together.
  Millis change{20'000};
  /// After how long without a sign of its node a change counts as abandoned.
  Millis change_abandoned{120'000};
};

struct DynamodbOptions {
  /// For tests: the store's time, in place of the service's own clock.
  std::function<StoreTime()> clock{};
  /// Called with a sentence about each property of the table that may lose records. On the store's
  /// thread.
  std::function<void(const std::string&)> warn{};
  WhichStore which{};  ///< A missing table is made where a missing store may be.
  std::function<void(const OpenedStore&)> opened{};  ///< On the store's thread.
  DynamodbWaits waits{};
};

/// A store in one table of Amazon DynamoDB, or of a service that speaks its protocol
/// (dynamodb/url.hpp). A reserve, a settling write and a replay take one round trip each: a write
/// of one item on the condition that nobody has written it meanwhile. All readings that decide are
/// strongly consistent.
///
/// An answered write is durable in three data centres. A table that is replicated to other regions
/// loses the latest writes when gateways move to another region, and two regions at once run keys
/// twice: all gateways have to use one region.
///
/// Completions run on the store's thread. If an answer is lost, the store repeats the call, and
/// answers `in_doubt` if that fails, too.
std::expected<std::unique_ptr<Store>, StoreError> open_dynamodb(const std::string& url,
                                                                const IdentitySettings& settings,
                                                                const DynamodbOptions& options);

/// Parses the URL without connecting. The error is a sentence.
std::expected<void, std::string> check_dynamodb_url(const std::string& url);

}  // namespace idem
