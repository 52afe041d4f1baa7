#include "store/sealed_store.hpp"

#include "store/sealed_transactions.hpp"

#include <idem/transaction.hpp>
#include <idem/worker_limits.hpp>

#include <condition_variable>
#include <mutex>
#include <utility>

namespace idem {
namespace {

/// Calls that are not asked yet, because the record is read before.
class Unasked {
 public:
  void begin() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_for_none() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [&] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  std::size_t count_ = 0;
};

/// As a store replies to an owner whose attempt is not the record's (core/transitions/owner.cpp).
OwnerReply stale_reply(const std::optional<Record>& record) {
  OwnerReply stale;
  if (!record) return stale;
  stale.state = record->state;
  const bool runs = record->state == State::in_progress || record->state == State::unknown;
  if (!runs) stale.expires_at = record->expires_at;
  return stale;
}

Fence number_of(const std::optional<Fence>& fence) noexcept { return fence.value_or(Fence{0}); }

class SealedStore final : public Store {
 public:
  SealedStore(std::unique_ptr<Store> inner, const EncryptionSettings& settings)
      : keys_(settings), inner_(std::move(inner)) {
    if (auto* const transactions = inner_->transactions()) {
      transactions_.emplace(*inner_, *transactions, keys_, scopes_);
    }
  }
  ~SealedStore() override { unasked_.wait_for_none(); }

  void call(StoreCall what, StoreCompletion done) override {
    if (std::holds_alternative<Reserve>(what)) return reserve(std::move(what), std::move(done));
    if (auto* verb = std::get_if<Accept>(&what)) return accept(std::move(*verb), std::move(done));
    if (std::holds_alternative<Claim>(what)) return claim(std::move(what), std::move(done));
    if (std::holds_alternative<Find>(what)) return find(std::move(what), std::move(done));
    if (std::holds_alternative<ReadEvidence>(what)) {
      return read_evidence(std::move(what), std::move(done));
    }
    if (keys_.seals()) {
      if (auto* verb = std::get_if<Complete>(&what)) {
        return complete(std::move(*verb), std::move(done));
      }
      if (auto* verb = std::get_if<Resolve>(&what)) {
        return resolve(std::move(*verb), std::move(done));
      }
      if (auto* verb = std::get_if<Reschedule>(&what)) seal_evidence_of(*verb);
      if (auto* verb = std::get_if<Reseal>(&what); verb && !verb->response && !verb->request) {
        return rekey(std::move(*verb), std::move(done));
      }
    }
    inner_->call(std::move(what), std::move(done));
  }

  void watch(std::shared_ptr<Watcher> watcher) override { inner_->watch(std::move(watcher)); }
  const Identity& identity() const noexcept override { return inner_->identity(); }
  std::size_t lifecycle_slice() const noexcept override { return inner_->lifecycle_slice(); }
  std::optional<std::uint64_t> asked() const noexcept override { return inner_->asked(); }
  Transactions* transactions() noexcept override {
    return transactions_ ? &*transactions_ : nullptr;
  }

 private:
  // ---- the way in ----

  void complete(Complete verb, StoreCompletion done) {
    const auto fence = number_of(verb.attempt.fence);
    if (fence != 0) {
      if (const auto scope = scopes_.find(verb.id)) {
        seal_answer(keys_.newest(), {*scope, verb.id, fence}, verb.response);
        return inner_->call(std::move(verb), std::move(done));
      }
    }
    const RecordId id = verb.id;
    read_first(id, std::move(done),
               [this, verb = std::move(verb)](std::optional<Record> record,
                                              StoreCompletion finish) mutable {
                 const auto& held = record ? record->attempt : std::nullopt;
                 const auto asked = number_of(verb.attempt.fence);
                 // By its token alone the attempt must be the one that was read: its fence binds.
                 if (!held || (asked == 0 && held->token != verb.attempt.token)) {
                   return finish(StoreReply(stale_reply(record)));
                 }
                 const Fence fence_of_it = asked != 0 ? asked : held->fence;
                 seal_answer(keys_.newest(), {record->scope, verb.id, fence_of_it}, verb.response);
                 inner_->call(std::move(verb), std::move(finish));
               });
  }

  // The store logs the evidence in every case, so that it is asked also where there is no record:
  // then it keeps no answer.
  void resolve(Resolve verb, StoreCompletion done) {
    seal_evidence_of(verb);
    if (!verb.response) return inner_->call(std::move(verb), std::move(done));
    const RecordId id = verb.id;
    read_first(id, std::move(done),
               [this, verb = std::move(verb)](std::optional<Record> record,
                                              StoreCompletion finish) mutable {
                 const std::string scope = record ? record->scope : std::string();
                 seal_answer(keys_.newest(), {scope, verb.id, number_of(verb.fence)},
                             *verb.response);
                 inner_->call(std::move(verb), std::move(finish));
               });
  }

  // If the record changes between the two steps, the second one does nothing.
  void rekey(Reseal verb, StoreCompletion done) {
    const RecordId id = verb.id;
    read_first(id, std::move(done),
               [this, verb = std::move(verb)](std::optional<Record> record,
                                              StoreCompletion finish) mutable {
                 if (!record) return finish(StoreReply(Resolve::Reply{}));
                 auto ended = keys_.plan(std::move(*record), verb);
                 if (ended) return finish(std::move(*ended));
                 if (verb.request) finish = if_it_rests(std::move(finish));
                 inner_->call(std::move(verb), std::move(finish));
               });
  }

  // A request that was claimed meanwhile runs now, and may come back as it was.
  static StoreCompletion if_it_rests(StoreCompletion done) {
    return [done = std::move(done)](StoreResult result) mutable {
      auto* const reply = result ? std::get_if<Resolve::Reply>(&*result) : nullptr;
      if (reply != nullptr && reply->verdict == Resolve::Verdict::wrong_state) {
        reply->verdict = Resolve::Verdict::too_early;
      }
      done(std::move(result));
    };
  }

  /// Reads the record, sealed, and calls `then` with it on the store's thread.
  template <class Then>
  void read_first(const RecordId& id, StoreCompletion done, Then then) {
    unasked_.begin();
    inner_->call(Find{id}, [this, done = std::move(done),
                            then = std::move(then)](StoreResult result) mutable {
      if (result) {
        then(std::get<std::optional<Record>>(std::move(*result)), std::move(done));
      } else {
        done(std::move(result));
      }
      unasked_.end();
    });
  }

  template <class Verb>
  void seal_evidence_of(Verb& verb) const {
    if (!holds_an_answer(verb.evidence)) return;
    seal_evidence(keys_.newest(), {{}, verb.id, number_of(verb.fence)}, verb.evidence);
  }

  void accept(Accept verb, StoreCompletion done) {
    std::string scope = verb.as.scope;
    if (keys_.seals()) {
      std::vector<RecordId> ids{verb.as.id};
      for (const OtherName& other : verb.as.also) ids.push_back(other.id);
      seal_request(keys_.newest(), scope, ids, verb.request);
    }
    give_opened(std::move(verb), std::move(scope), std::move(done));
  }

  // ---- the way out ----

  void reserve(StoreCall verb, StoreCompletion done) {
    std::string scope;
    if (keys_.seals()) scope = std::get<Reserve>(verb).scope;
    give_opened(std::move(verb), std::move(scope), std::move(done));
  }

  void give_opened(StoreCall verb, std::string scope, StoreCompletion done) {
    inner_->call(std::move(verb), [this, scope = std::move(scope),
                                   done = std::move(done)](StoreResult result) mutable {
      if (!result) return done(std::move(result));
      auto& outcome = std::get<ReserveOutcome>(*result);
      if (const auto* execute = std::get_if<Execute>(&outcome); execute && keys_.seals()) {
        scopes_.put(execute->id, scope);
      }
      if (auto* replay = std::get_if<Replay>(&outcome)) {
        const auto opened =
            keys_.open(replay->response, {scope, replay->id, number_of(replay->fence)});
        if (!opened) return read_again(std::move(*replay), opened.error(), std::move(done));
      }
      done(std::move(result));
    });
  }

  // A cache in front of the store may have it under a key that is gone since, or from an attacker:
  // then the store has the answer.
  void read_again(Replay replay, StoreError error, StoreCompletion done) {
    const RecordId id = replay.id;
    inner_->call(Find{id}, [this, replay = std::move(replay), error = std::move(error),
                            done = std::move(done)](StoreResult result) mutable {
      if (!result) return done(std::move(result));
      auto& record = std::get<std::optional<Record>>(*result);
      const bool is_it = record && record->response && record->state == State::completed &&
                         record->completed_at == replay.completed_at;
      if (!is_it || !open_record(*record)) return done(std::unexpected(std::move(error)));
      replay.response = std::move(*record->response);
      done(StoreReply(ReserveOutcome(std::move(replay))));
    });
  }

  void claim(StoreCall verb, StoreCompletion done) {
    inner_->call(std::move(verb), [this, done = std::move(done)](StoreResult result) mutable {
      if (!result) return done(std::move(result));
      auto& claimed = std::get<std::optional<Claimed>>(*result);
      if (!claimed) return done(std::move(result));
      const auto opened = keys_.open_request(claimed->request, {claimed->scope, claimed->id, 0});
      if (!opened) return put_back(*claimed, opened.error(), std::move(done));
      if (keys_.seals()) scopes_.put(claimed->id, claimed->scope);
      done(std::move(result));
    });
  }

  // Nothing was sent, and nothing will be under this attempt. It rests, so that others are claimed
  // meanwhile: another node, or the next configuration, may have its key. If this call is lost, the
  // end of the lease does the same.
  void put_back(const Claimed& claimed, StoreError error, StoreCompletion done) {
    inner_->call(Release{claimed.id, claimed.attempt, ReleaseBasis::proven, "request_sealed",
                         limits::async_unable_rest},
                 [error = std::move(error), done = std::move(done)](const StoreResult&) mutable {
                   done(std::unexpected(std::move(error)));
                 });
  }

  void find(StoreCall verb, StoreCompletion done) {
    inner_->call(std::move(verb), [this, done = std::move(done)](StoreResult result) mutable {
      if (!result) return done(std::move(result));
      auto& record = std::get<std::optional<Record>>(*result);
      if (record) {
        const auto opened = open_record(*record);
        if (!opened) return done(std::unexpected(opened.error()));
      }
      done(std::move(result));
    });
  }

  SealingKeys::Opened open_record(Record& record) const {
    if (record.response) {
      const auto opened =
          keys_.open(*record.response, {record.scope, record.id, number_of(record.fence())});
      if (!opened) return opened;
    }
    if (!record.stored_request) return {};
    return keys_.open_request(*record.stored_request, {record.scope, record.id, 0});
  }

  void read_evidence(StoreCall verb, StoreCompletion done) {
    const RecordId id = std::get<ReadEvidence>(verb).id;
    inner_->call(std::move(verb), [this, id, done = std::move(done)](StoreResult result) mutable {
      if (!result) return done(std::move(result));
      for (EvidenceEntry& entry : std::get<std::vector<EvidenceEntry>>(*result)) {
        const auto opened = keys_.open_evidence(entry.evidence, {{}, id, number_of(entry.fence)});
        if (!opened) return done(std::unexpected(opened.error()));
      }
      done(std::move(result));
    });
  }

  const SealingKeys keys_;
  AttemptScopes scopes_;
  Unasked unasked_;
  std::optional<SealedTransactions> transactions_;
  std::unique_ptr<Store> inner_;  ///< Destroyed first: its completions use the others.
};

}  // namespace

std::unique_ptr<Store> make_sealed(std::unique_ptr<Store> inner,
                                   const EncryptionSettings& settings) {
  return std::make_unique<SealedStore>(std::move(inner), settings);
}

}  // namespace idem
