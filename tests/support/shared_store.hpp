#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/postgres.hpp"

/// A store of a test's own, on the servers that the run shares, for several gateways at once.
namespace idem::test {

class SharedStoreUrl {
 public:
  /// "postgres", "redis", "redis_cluster" or "hybrid".
  explicit SharedStoreUrl(const std::string& kind);
  const std::string& url() const { return url_; }

 private:
  std::unique_ptr<TestDatabase> database_;
  std::string url_;
};

std::vector<std::string> shared_store_kinds();

}  // namespace idem::test
