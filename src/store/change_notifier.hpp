#pragma once

#include <idem/store.hpp>

#include <memory>

namespace idem {

/// A store's side of Store::watch: finds the records that a call changed, from the call and its
/// reply, and notifies the watcher. A store to which other processes write must also notify the
/// watcher of their changes.
class ChangeNotifier {
 public:
  /// Must come before the store's first call, which orders this before notify().
  void watch(std::shared_ptr<Watcher> watcher) { watcher_ = std::move(watcher); }

  /// Once the call is durable. On the store's thread.
  void notify(const StoreCall& call, const StoreResult& result) const noexcept;

  /// Null: there is no watcher.
  Watcher* watcher() const noexcept { return watcher_.get(); }

 private:
  std::shared_ptr<Watcher> watcher_;
};

}  // namespace idem
