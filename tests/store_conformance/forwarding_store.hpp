#pragma once

#include <idem/store.hpp>

namespace idem::test {

/// A store that asks another one. Tests override what they watch or change. `inner` must outlive
/// it.
class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(Store& inner) : inner_(inner) {}

  void call(StoreCall what, StoreCompletion done) override {
    inner_.call(std::move(what), std::move(done));
  }
  void watch(std::shared_ptr<Watcher> watcher) override { inner_.watch(std::move(watcher)); }
  const Identity& identity() const noexcept override { return inner_.identity(); }
  Transactions* transactions() noexcept override { return inner_.transactions(); }
  std::size_t lifecycle_slice() const noexcept override { return inner_.lifecycle_slice(); }
  std::optional<std::uint64_t> asked() const noexcept override { return inner_.asked(); }

 protected:
  Store& inner() noexcept { return inner_; }

 private:
  Store& inner_;
};

}  // namespace idem::test
