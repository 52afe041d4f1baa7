#include "store/embedded/wide_reserve.hpp"

#include "core/transitions/store_steps.hpp"
#include "store/embedded/shard_of.hpp"

#include <algorithm>
#include <map>

namespace idem::embedded {
namespace {

using Parts = RecordTable::Parts;

Reserve& reserve_of(StoreCall& call) {
  auto* const accept = std::get_if<Accept>(&call);
  return accept != nullptr ? accept->as : std::get<Reserve>(call);
}

/// A record that a reserve may mean.
struct Name {
  RecordId id;
  std::vector<Fingerprint> fingerprints;
  // As it was found.
  bool is_live = false;
  bool is_same = false;  ///< The reserve is for the same request.
  std::optional<StoreError> unreadable{};
};

/// Those of them that belong to one shard.
class LookForNames final : public StoreTask {
 public:
  explicit LookForNames(std::vector<Name*> names) : names_(std::move(names)) {}

  bool make_steps(const StepContext& context) override {
    for (Name* const name : names_) {
      const auto row = context.table.load(name->id, Parts::slot, context.now);
      if (!row) {
        name->unreadable = row.error();
        continue;
      }
      name->is_live = *row && transitions::is_live((*row)->record, context.now);
      name->is_same =
          name->is_live && transitions::any_matches(name->fingerprints, (*row)->record.fingerprint);
    }
    return true;
  }
  void refuse(const std::string& why) override { lose(why); }
  void lose(const std::string& why) override {
    names_.front()->unreadable = StoreError{StoreError::Code::unavailable, why};
  }

 private:
  std::vector<Name*> names_;
};

/// Makes the reserve if a record is still there; if it has gone meanwhile, does nothing.
class ReserveIfThere final : public StoreTask {
 public:
  ReserveIfThere(StoreCall call, const RecordId& there)
      : change_{std::move(call), {}}, there_(there) {}

  std::size_t bytes() const noexcept override {
    const auto* const accept = std::get_if<Accept>(&change_.call);
    return accept != nullptr ? accept->request.size() : 0;
  }
  bool make_steps(const StepContext& context) override {
    const auto row = context.table.load(there_, Parts::slot, context.now);
    is_gone_ = row && !(*row && transitions::is_live((*row)->record, context.now));
    if (!is_gone_) change_.result = do_step(change_.call, context);
    return true;
  }
  bool reserves() const noexcept override { return true; }
  void refuse(const std::string& why) override {
    change_.result = std::unexpected(StoreError{StoreError::Code::unavailable, why});
  }
  void lose(const std::string& why) override {
    change_.result = std::unexpected(StoreError{StoreError::Code::in_doubt, why});
  }
  const Change* change() const noexcept override { return is_gone_ ? nullptr : &change_; }

  bool is_gone() const { return is_gone_; }
  StoreResult take_result() { return std::move(change_.result); }

 private:
  Change change_;
  RecordId there_;
  bool is_gone_ = false;
};

/// One reserve under names of several shards.
class WideReserve : public std::enable_shared_from_this<WideReserve> {
 public:
  WideReserve(Shards shards, NameLocks& locks, StoreCall call, StoreCompletion done)
      : shards_(shards), locks_(locks), call_(std::move(call)), done_(std::move(done)) {
    const Reserve& reserve = reserve_of(call_);
    names_.push_back({reserve.id, reserve.fingerprints});
    for (const OtherName& other : reserve.also) {
      names_.push_back(
          {other.id, other.fingerprints.empty() ? reserve.fingerprints : other.fingerprints});
    }
    auto ids = std::make_shared<std::vector<RecordId>>();
    for (const Name& name : names_) ids->push_back(name.id);
    std::ranges::sort(*ids);
    const auto repeated = std::ranges::unique(*ids);
    ids->erase(repeated.begin(), repeated.end());
    ids_ = std::move(ids);
  }

  void begin() {
    locks_.take(ids_, [self = shared_from_this()] { self->look(); });
  }

 private:
  std::uint32_t shard_of(const RecordId& id) const {
    return embedded::shard_of(id, static_cast<std::uint32_t>(shards_.size()));
  }

  void look() {
    std::map<std::uint32_t, std::vector<Name*>> by_shard;
    for (Name& name : names_) {
      name.unreadable.reset();
      by_shard[shard_of(name.id)].push_back(&name);
    }
    looking_ = by_shard.size();
    for (auto& [shard, names] : by_shard) {
      shards_[shard]->run(std::make_shared<LookForNames>(std::move(names)),
                          [self = shared_from_this()](const StoreResult&) {
                            if (--self->looking_ == 0) self->decide();
                          });
    }
  }

  /// As find_any() in store_steps.cpp, over all shards.
  void decide() {
    const Name* first = nullptr;
    const Name* same = nullptr;
    for (const Name& name : names_) {
      if (name.unreadable) return end(std::unexpected(*name.unreadable));
      if (name.is_live && first == nullptr) first = &name;
      if (name.is_same) {
        same = &name;
        break;
      }
    }
    const Name* const counts = same != nullptr ? same : first;
    if (counts == nullptr) {
      shards_[home()]->call(call_at_home(), [self = shared_from_this()](StoreResult result) {
        self->end(std::move(result));
      });
    } else if (shard_of(counts->id) == home()) {
      reserve_if_there(call_at_home(), counts->id);
    } else {
      reserve_if_there(call_of(*counts), counts->id);
    }
  }

  std::uint32_t home() const { return shard_of(names_.front().id); }

  StoreCall call_at_home() const {
    StoreCall call = call_;
    std::erase_if(reserve_of(call).also,
                  [&](const OtherName& name) { return shard_of(name.id) != home(); });
    return call;
  }

  StoreCall call_of(const Name& name) const {
    StoreCall call = call_;
    Reserve& reserve = reserve_of(call);
    reserve.id = name.id;
    reserve.fingerprints = name.fingerprints;
    reserve.also.clear();
    return call;
  }

  /// If it has gone, another one may count.
  void reserve_if_there(StoreCall call, const RecordId& there) {
    const auto task = std::make_shared<ReserveIfThere>(std::move(call), there);
    shards_[shard_of(there)]->run(task, [self = shared_from_this(), task](const StoreResult&) {
      task->is_gone() ? self->look() : self->end(task->take_result());
    });
  }

  void end(StoreResult result) {
    locks_.give_back(*ids_);
    done_(std::move(result));
  }

  Shards shards_;
  NameLocks& locks_;
  StoreCall call_;
  StoreCompletion done_;
  std::vector<Name> names_;  ///< The reserve's own first.
  std::shared_ptr<const std::vector<RecordId>> ids_;
  std::atomic<std::size_t> looking_{0};
};

}  // namespace

void Reserving::reserve(StoreCall call, StoreCompletion done) {
  const Reserve& reserve = reserve_of(call);
  const RecordId id = reserve.id;
  const auto count = static_cast<std::uint32_t>(shards_.size());
  const std::uint32_t home = shard_of(id, count);
  const bool is_wide = std::ranges::any_of(
      reserve.also, [&](const OtherName& other) { return shard_of(other.id, count) != home; });
  if (is_wide) {
    std::make_shared<WideReserve>(shards_, locks_, std::move(call), std::move(done))->begin();
    return;
  }
  locks_.pass(id,
              [&shard = *shards_[home], call = std::move(call), done = std::move(done)]() mutable {
                shard.call(std::move(call), std::move(done));
              });
}

}  // namespace idem::embedded
