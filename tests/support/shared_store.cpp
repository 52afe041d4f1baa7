#include "support/shared_store.hpp"

#include "support/redis.hpp"

namespace idem::test {

SharedStoreUrl::SharedStoreUrl(const std::string& kind) {
  const std::string prefix = "/?prefix=" + new_redis_prefix();
  if (kind == "postgres" || kind == "hybrid") database_ = std::make_unique<TestDatabase>();
  if (kind == "postgres") url_ = database_->uri();
  if (kind == "redis") url_ = "redis://" + shared_redis_address() + prefix;
  if (kind == "redis_cluster") {
    url_ = "redis+cluster://" + shared_redis_cluster_addresses() + prefix;
  }
  if (kind == "hybrid") {
    url_ = "hybrid:?truth=" + database_->uri() + "&fast=redis://" + shared_redis_address() + prefix;
  }
}

std::vector<std::string> shared_store_kinds() {
  return {"postgres", "redis", "redis_cluster", "hybrid"};
}

}  // namespace idem::test
