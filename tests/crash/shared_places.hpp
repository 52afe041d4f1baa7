#pragma once

#include <memory>
#include <random>
#include <string>

/// Stores that several gateways share, each of a test's own, with servers that can fail.
namespace idem::test {

class SharedPlace {
 public:
  virtual ~SharedPlace() = default;
  virtual std::string url() const = 0;
  /// The store's server ends without notice, or cannot be reached, and comes back.
  virtual void fail(std::mt19937& random) = 0;
};

/// Of a kind that SharedStoreUrl has.
std::unique_ptr<SharedPlace> make_shared_place(const std::string& kind);

}  // namespace idem::test
