#include "store/embedded/over_shards.hpp"

#include "core/transitions/store_steps.hpp"
#include "core/transitions/verb_check.hpp"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <iterator>
#include <tuple>

namespace idem::embedded {
namespace {

/// Gathers one result of each of `count` askings; the last one goes on with all of them.
class Gathering {
 public:
  using Then = std::move_only_function<void(std::vector<StoreResult>)>;

  Gathering(std::size_t count, Then then) : results_(count), left_(count), then_(std::move(then)) {}

  static StoreCompletion place(const std::shared_ptr<Gathering>& gathering, std::size_t at) {
    return [gathering, at](StoreResult result) { gathering->put(at, std::move(result)); };
  }

 private:
  void put(std::size_t at, StoreResult result) {
    {
      const std::lock_guard lock(mutex_);
      results_[at] = std::move(result);
      if (--left_ > 0) return;
    }
    then_(std::move(results_));
  }

  std::mutex mutex_;
  std::vector<StoreResult> results_;
  std::size_t left_;
  Then then_;
};

template <class Verb>
void ask_all(Shards shards, const Verb& verb, Gathering::Then then) {
  const auto gathering = std::make_shared<Gathering>(shards.size(), std::move(then));
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shards[i]->call(StoreCall(verb), Gathering::place(gathering, i));
  }
}

/// The first error, if there is one.
const StoreError* error_in(const std::vector<StoreResult>& results) {
  const auto failed = std::ranges::find_if(results, [](const auto& result) { return !result; });
  return failed == results.end() ? nullptr : &failed->error();
}

// ---- what is due first ----

/// What a shard would do next: of several, the least is due first.
using Next = std::optional<std::pair<StoreTime, RecordId>>;

/// Asks a shard for its next. What cannot be read is due at the beginning of time, so that a step
/// leaves it out.
template <class Verb>
class LookForNext final : public StoreTask {
 public:
  bool make_steps(const StepContext& context) override {
    const auto id = next_in(context);
    if (!id) return true;
    const auto row = context.table.load(*id, RecordTable::Parts::slot, context.now);
    next_ = {row && *row ? moment_of((*row)->record) : StoreTime{}, *id};
    return true;
  }
  void refuse(const std::string&) override {}  // The call that follows says so.
  void lose(const std::string&) override {}

  const Next& next() const { return next_; }

 private:
  static std::optional<RecordId> next_in(const StepContext& context) {
    if constexpr (std::is_same_v<Verb, Claim>) {
      return context.table.next_claimable(context.now);
    } else {
      const auto due = std::is_same_v<Verb, Sweep> ? context.table.due_for_sweep(context.now, 1)
                                                   : context.table.due_for_reap(context.now, 1);
      return due.empty() ? std::nullopt : std::optional(due.front());
    }
  }
  static StoreTime moment_of(const Record& record) {
    if constexpr (std::is_same_v<Verb, Claim>) return record.locked_until;
    return transitions::due_at(record).value_or(StoreTime{});
  }

  Next next_;
};

/// Calls `then` with the shard where it is due first; null: nowhere. An error: a shard is gone.
template <class Verb>
void find_next(Shards shards,
               std::move_only_function<void(std::expected<LedgerStore*, StoreError>)> then) {
  auto looks = std::make_shared<std::vector<std::shared_ptr<LookForNext<Verb>>>>();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    looks->push_back(std::make_shared<LookForNext<Verb>>());
  }
  const auto gathering = std::make_shared<Gathering>(
      shards.size(), [shards, looks, then = std::move(then)](const auto& results) mutable {
        std::optional<std::size_t> first;
        for (std::size_t i = 0; i < looks->size(); ++i) {
          const Next& next = (*looks)[i]->next();
          if (next && (!first || *next < *(*looks)[*first]->next())) first = i;
        }
        // A shard that fails does not keep the others from their work.
        const StoreError* const error = error_in(results);
        if (!first && error != nullptr) return then(std::unexpected(*error));
        then(first ? shards[*first].get() : nullptr);
      });
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shards[i]->run((*looks)[i], Gathering::place(gathering, i));
  }
}

// ---- Sweep and Reap ----

template <class Verb>
class DueSteps : public std::enable_shared_from_this<DueSteps<Verb>> {
 public:
  DueSteps(Shards shards, const Verb& verb, StoreCompletion done)
      : shards_(shards), verb_(verb), left_(verb.limit), done_(std::move(done)) {
    for (const auto& shard : shards) waiting_.push_back(shard.get());
  }

  void ask() {
    if (left_ >= shards_.size()) return ask_waiting(left_);
    // The one where a record has been due the longest makes one step.
    find_next<Verb>(shards_, [self = this->shared_from_this()](auto first) {
      if (!first && !self->error_) self->error_ = std::move(first.error());
      if (!first || *first == nullptr) return self->end();
      self->waiting_ = {*first};
      self->ask_waiting(1);
    });
  }

 private:
  void ask_waiting(std::size_t limit) {
    asked_ = std::exchange(waiting_, {});
    shares_.clear();
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      shares_.push_back(limit / asked_.size() + (i < limit % asked_.size() ? 1 : 0));
    }
    const auto gathering = std::make_shared<Gathering>(
        asked_.size(), [self = this->shared_from_this()](std::vector<StoreResult> results) {
          self->answered(std::move(results));
        });
    // Behind the last call the answers may change these members.
    const auto asked = asked_;
    const auto shares = shares_;
    Verb part = verb_;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      part.limit = shares[i];
      asked[i]->call(StoreCall(part), Gathering::place(gathering, i));
    }
  }

  void answered(std::vector<StoreResult> results) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i]) {
        if (!error_) error_ = std::move(results[i].error());
        continue;
      }
      auto& steps = std::get<std::vector<LifecycleStep>>(*results[i]);
      if (steps.size() >= shares_[i]) waiting_.push_back(asked_[i]);
      left_ -= std::min(left_, steps.size());
      std::ranges::move(steps, std::back_inserter(steps_));
    }
    if (left_ > 0 && !waiting_.empty()) return ask();
    end();
  }

  void end() {
    // What was done has to be reported, and who failed fails the next time, too.
    std::ranges::stable_sort(steps_, std::greater(), &LifecycleStep::late);
    if (steps_.empty() && error_) return done_(std::unexpected(std::move(*error_)));
    done_(std::move(steps_));
  }

  Shards shards_;
  Verb verb_;
  std::size_t left_;
  StoreCompletion done_;
  std::vector<LedgerStore*> waiting_;  ///< They may have more.
  std::vector<LedgerStore*> asked_;
  std::vector<std::size_t> shares_;
  std::vector<LifecycleStep> steps_;
  std::optional<StoreError> error_;
};

// ---- Claim ----

class Claiming : public std::enable_shared_from_this<Claiming> {
 public:
  Claiming(Shards shards, const Claim& verb, StoreCompletion done)
      : shards_(shards), verb_(verb), done_(std::move(done)) {}

  void look() {
    find_next<Claim>(shards_, [self = shared_from_this()](auto first) { self->claim(first); });
  }

 private:
  void claim(const std::expected<LedgerStore*, StoreError>& first) {
    if (!first) return done_(std::unexpected(first.error()));
    if (*first == nullptr) return done_(std::optional<Claimed>());
    (*first)->call(StoreCall(verb_), [self = shared_from_this()](StoreResult result) {
      const bool is_gone = result && !std::get<std::optional<Claimed>>(*result);
      // Another claim was faster, so that one got it.
      is_gone ? self->look() : self->done_(std::move(result));
    });
  }

  Shards shards_;
  Claim verb_;
  StoreCompletion done_;
};

// ---- AdoptRoutes ----

class Meeting {
 public:
  Meeting(AdoptRoutes verb, std::size_t all) : verb_(std::move(verb)), contexts_(all) {}

  /// Returns when all have come and the decision is made. Null: the shard cannot.
  void attend(std::size_t place, const StepContext* context) {
    std::unique_lock lock(mutex_);
    contexts_[place] = context;
    if (++came_ < contexts_.size()) return over_.wait(lock, [this] { return is_over_; });
    if (std::ranges::find(contexts_, nullptr) == contexts_.end())
      reply_ = adopt_routes(verb_, contexts_);
    is_over_ = true;
    over_.notify_all();
  }

  AdoptRoutes::Reply reply() const { return reply_; }

 private:
  AdoptRoutes verb_;
  std::mutex mutex_;
  std::condition_variable over_;
  std::vector<const StepContext*> contexts_;
  std::size_t came_ = 0;
  bool is_over_ = false;
  AdoptRoutes::Reply reply_;
};

class Attendance final : public StoreTask {
 public:
  Attendance(std::shared_ptr<Meeting> meeting, std::size_t place)
      : meeting_(std::move(meeting)), place_(place) {}

  bool make_steps(const StepContext& context) override {
    meeting_->attend(place_, &context);
    return true;
  }
  void refuse(const std::string&) override { meeting_->attend(place_, nullptr); }
  void lose(const std::string&) override {}  // The result says so.

 private:
  std::shared_ptr<Meeting> meeting_;
  std::size_t place_;
};

}  // namespace

void list_in(Shards shards, const List& verb, StoreCompletion done) {
  ask_all(shards, verb, [limit = verb.limit, done = std::move(done)](auto results) mutable {
    if (const StoreError* const error = error_in(results)) return done(std::unexpected(*error));
    std::vector<Record> all;
    for (StoreResult& result : results) {
      std::ranges::move(std::get<std::vector<Record>>(*result), std::back_inserter(all));
    }
    std::ranges::sort(all, {}, &Record::id);
    if (all.size() > limit) all.resize(limit);
    done(std::move(all));
  });
}

void count_in(Shards shards, StoreCompletion done) {
  ask_all(shards, Count{}, [done = std::move(done)](auto results) mutable {
    if (const StoreError* const error = error_in(results)) return done(std::unexpected(*error));
    Census sum = std::get<Census>(*results.front());
    for (std::size_t i = 1; i < results.size(); ++i) {
      const auto& census = std::get<Census>(*results[i]);
      for (std::size_t state = 0; state < sum.by_state.size(); ++state) {
        sum.by_state[state] += census.by_state[state];
      }
      if (census.oldest_unknown &&
          (!sum.oldest_unknown || *census.oldest_unknown < *sum.oldest_unknown)) {
        sum.oldest_unknown = census.oldest_unknown;
      }
      sum.leases_ended += census.leases_ended;
      sum.now = std::max(sum.now, census.now);
    }
    done(sum);
  });
}

void claim_in(Shards shards, const Claim& verb, StoreCompletion done) {
  if (what_is_wrong(StoreCall(verb))) return shards.front()->call(StoreCall(verb), std::move(done));
  std::make_shared<Claiming>(shards, verb, std::move(done))->look();
}

template <class Verb>
void make_due_steps_in(Shards shards, const Verb& verb, StoreCompletion done) {
  if (verb.limit == 0) return shards.front()->call(StoreCall(verb), std::move(done));
  std::make_shared<DueSteps<Verb>>(shards, verb, std::move(done))->ask();
}
template void make_due_steps_in(Shards, const Sweep&, StoreCompletion);
template void make_due_steps_in(Shards, const Reap&, StoreCompletion);

void Adoptions::adopt_in(Shards shards, AdoptRoutes verb, StoreCompletion done) {
  const auto meeting = std::make_shared<Meeting>(std::move(verb), shards.size());
  const auto gathering = std::make_shared<Gathering>(
      shards.size(), [meeting, done = std::move(done)](auto results) mutable {
        if (const StoreError* const error = error_in(results)) return done(std::unexpected(*error));
        done(meeting->reply());
      });
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shards[i]->run(std::make_shared<Attendance>(meeting, i), Gathering::place(gathering, i));
  }
}

}  // namespace idem::embedded
