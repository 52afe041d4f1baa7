#pragma once

#include <idem/store.hpp>
#include <idem/store_wait.hpp>

#include <latch>
#include <memory>
#include <utility>
#include <vector>

namespace idem {

/// Calls that were made at once; their replies have the order of the verbs.
template <class Verb>
class Asked {
 public:
  using Result = std::expected<typename Verb::Reply, StoreError>;

  Asked(Store& store, std::vector<Verb> verbs) : shared_(std::make_shared<Shared>(verbs.size())) {
    for (std::size_t i = 0; i < verbs.size(); ++i) {
      ask(store, std::move(verbs[i]), [shared = shared_, i](Result result) {
        shared->results[i] = std::move(result);
        shared->left.count_down();
      });
    }
  }
  std::vector<Result> wait() {
    about_to_wait();
    shared_->left.wait();
    return std::move(shared_->results);
  }

 private:
  // Shared, because the store's thread is still inside count_down() when the last one wakes us.
  struct Shared {
    explicit Shared(std::size_t count)
        : results(count, std::unexpected(StoreError{})), left(static_cast<std::ptrdiff_t>(count)) {}
    std::vector<Result> results;
    std::latch left;
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace idem
