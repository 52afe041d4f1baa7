#include "store/embedded/sharded_store.hpp"

#include "store/embedded/shard_of.hpp"

#include <idem/store_wait.hpp>

#include <future>

namespace idem::embedded {
namespace {

/// So that a shard's answers before it are given.
class Nothing final : public StoreTask {
 public:
  bool make_steps(const StepContext&) override { return true; }
  void refuse(const std::string&) override {}
  void lose(const std::string&) override {}
};

}  // namespace

/// To which shards a verb goes.
class ShardedStore::Routing {
 public:
  Routing(ShardedStore& store, StoreCall& call, StoreCompletion& done)
      : store_(store), call_(call), done_(done) {}

  void operator()(const Reserve&) { store_.reserving_.reserve(std::move(call_), std::move(done_)); }
  void operator()(const Accept&) { store_.reserving_.reserve(std::move(call_), std::move(done_)); }

  void operator()(const Claim& verb) { claim_in(store_.shards_, verb, std::move(done_)); }
  void operator()(const List& verb) { list_in(store_.shards_, verb, std::move(done_)); }
  void operator()(const Count&) { count_in(store_.shards_, std::move(done_)); }
  void operator()(const Sweep& verb) { make_due_steps_in(store_.shards_, verb, std::move(done_)); }
  void operator()(const Reap& verb) { make_due_steps_in(store_.shards_, verb, std::move(done_)); }
  void operator()(AdoptRoutes& verb) {
    store_.adoptions_.adopt_in(store_.shards_, std::move(verb), std::move(done_));
  }

  void operator()(const AppendLine&) { to(*store_.shards_.front()); }
  void operator()(const ReadLines&) { to(*store_.shards_.front()); }
  void operator()(const ListJournals&) { to(*store_.shards_.front()); }
  void operator()(const DropJournal&) { to(*store_.shards_.front()); }

  /// The others are about one record.
  template <class Verb>
  void operator()(const Verb& verb) {
    to(store_.shard_of(verb.id));
  }

 private:
  void to(LedgerStore& shard) { shard.call(std::move(call_), std::move(done_)); }

  ShardedStore& store_;
  StoreCall& call_;
  StoreCompletion& done_;
};

ShardedStore::ShardedStore(std::vector<std::unique_ptr<LedgerStore>> shards)
    : shards_(std::move(shards)) {}

// What one shard answers may ask another one: none may end before all are quiet.
ShardedStore::~ShardedStore() {
  while (!is_quiet()) {
    for (const auto& shard : shards_) {
      const auto reached = std::make_shared<std::promise<void>>();
      auto waiting = reached->get_future();
      shard->run(std::make_shared<Nothing>(),
                 [reached](const StoreResult&) { reached->set_value(); });
      about_to_wait();
      waiting.wait();
    }
  }
}

/// No answer is owed, and so no completion runs that could ask for one.
bool ShardedStore::is_quiet() const noexcept {
  std::uint64_t answered = 0;
  for (const auto& shard : shards_) answered += shard->answered();
  std::uint64_t came = 0;
  for (const auto& shard : shards_) came += shard->came();
  return came == answered;
}

void ShardedStore::call(StoreCall what, StoreCompletion done) {
  std::visit(Routing(*this, what, done), what);
}

void ShardedStore::watch(std::shared_ptr<Watcher> watcher) {
  for (const auto& shard : shards_) shard->watch(watcher);
}

std::optional<std::uint64_t> ShardedStore::asked() const noexcept {
  std::uint64_t asked = 0;
  for (const auto& shard : shards_) asked += shard->asked().value_or(0);
  return asked;
}

LedgerStore& ShardedStore::shard_of(const RecordId& id) const noexcept {
  return *shards_[embedded::shard_of(id, static_cast<std::uint32_t>(shards_.size()))];
}

}  // namespace idem::embedded
