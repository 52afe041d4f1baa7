#pragma once

#include "core/bytes/base64.hpp"
#include "store/dynamodb/dynamodb_store.hpp"
#include "store_conformance/asking.hpp"
#include "support/dynamodb.hpp"

/// Stores in DynamoDB by the service's own clock, for tests that need more than conformance.
namespace idem::test {

using Opened = std::expected<std::unique_ptr<Store>, StoreError>;

inline DynamodbOptions quick_options() {
  return {.waits = {.identity_lease = 300ms, .change = 400ms, .change_abandoned = 4s}};
}

/// As the key's item is named in a request's body.
inline std::string to_base64_of_key(int number) {
  const RecordId id = key(number);
  return to_base64({reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()});
}

inline std::unique_ptr<Store> open_table(const std::string& url,
                                         const DynamodbOptions& options = quick_options()) {
  auto store = open_dynamodb(url, test_settings(), options);
  if (store) return std::move(*store);
  ADD_FAILURE() << store.error().detail;
  std::abort();
}

}  // namespace idem::test
