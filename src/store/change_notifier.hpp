#pragma once

#include <idem/store.hpp>

#include <memory>

namespace idem {

/// A store's end of Store::watch: from a call and its reply to the records that it changed. For a
/// store whose calls are all made in this process; one that others write to as well tells those
/// changes besides.
class ChangeNotifier {
 public:
  /// Before the store's thread is asked anything, which orders this before tell().
  void watch(std::shared_ptr<Watcher> watcher) { watcher_ = std::move(watcher); }

  /// Once the call is durable. On the store's thread.
  void tell(const StoreCall& call, const StoreResult& result) const noexcept;

  /// None: nobody watches.
  Watcher* watcher() const noexcept { return watcher_.get(); }

 private:
  std::shared_ptr<Watcher> watcher_;
};

}  // namespace idem
