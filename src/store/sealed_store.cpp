#include "store/sealed_store.hpp"

#include "store/scope_sealing.hpp"
#include "store/sealed_journals.hpp"
#include "store/sealed_transactions.hpp"

#include <idem/transaction.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <utility>

namespace idem {
namespace {

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
  SealedStore(std::unique_ptr<Store> inner, const EncryptionSettings& settings,
              ScopeKeys::Clock clock)
      : keys_(settings),
        is_per_scope_(settings.key_per_scope && keys_.seals()),
        inner_(std::move(inner)) {
    scoped_.emplace(*inner_, keys_, is_per_scope_, std::move(clock), unasked_);
    journals_.emplace(*inner_, keys_, scoped_->scope_keys(), unasked_);
    if (auto* const transactions = inner_->transactions()) {
      transactions_.emplace(*inner_, *transactions, keys_, scopes_, *scoped_);
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
    if (auto* verb = std::get_if<AppendLine>(&what)) {
      return journals_->append(std::move(*verb), std::move(done));
    }
    if (auto* verb = std::get_if<ReadLines>(&what)) {
      return journals_->read(std::move(*verb), std::move(done));
    }
    if (auto* verb = std::get_if<DropJournal>(&what)) {
      return journals_->drop(std::move(*verb), std::move(done));
    }
    if (keys_.seals()) {
      if (auto* verb = std::get_if<Complete>(&what)) {
        return complete(std::move(*verb), std::move(done));
      }
      if (auto* verb = std::get_if<Resolve>(&what)) {
        return decide(std::move(*verb), std::move(done));
      }
      if (auto* verb = std::get_if<Reschedule>(&what)) {
        return decide(std::move(*verb), std::move(done));
      }
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
        return complete_in(*scope, fence, std::move(verb), std::move(done));
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
                 complete_in(record->scope, fence_of_it, std::move(verb), std::move(finish));
               });
  }

  void complete_in(const std::string& scope, Fence fence, Complete verb, StoreCompletion done) {
    const RecordId id = verb.id;
    // The answer is there, and its owner repeats: a person may still repair a damaged key.
    const bool may_heal = true;
    scoped_->with_key(
        scope, id, std::move(done),
        [this, scope, fence, verb = std::move(verb)](const NamedKey& key,
                                                     StoreCompletion finish) mutable {
          seal_answer(key, {scope, verb.id, fence}, verb.response);
          inner_->call(std::move(verb), std::move(finish));
        },
        may_heal);
  }

  template <class Verb>
  static bool has_answer(const Verb& verb) {
    if constexpr (std::is_same_v<Verb, Resolve>) return verb.response.has_value();
    return false;
  }
  template <class Verb>
  static void seal_decision(const NamedKey& key, const std::string& scope, Verb& verb) {
    const Fence fence = number_of(verb.fence);
    if (holds_an_answer(verb.evidence)) seal_evidence(key, {{}, verb.id, fence}, verb.evidence);
    if constexpr (std::is_same_v<Verb, Resolve>) {
      if (verb.response) seal_answer(key, {scope, verb.id, fence}, *verb.response);
    }
  }

  // The store logs the evidence in every case, so that it is asked also where there is no record:
  // then it keeps no answer.
  template <class Verb>
  void decide(Verb verb, StoreCompletion done) {
    const bool needs_scope = has_answer(verb) || (is_per_scope_ && holds_an_answer(verb.evidence));
    if (!needs_scope) {
      seal_decision(keys_.newest(), {}, verb);
      return inner_->call(std::move(verb), std::move(done));
    }
    const RecordId id = verb.id;
    read_first(id, std::move(done),
               [this, id, verb = std::move(verb)](std::optional<Record> record,
                                                  StoreCompletion finish) mutable {
                 if (!record) {
                   seal_decision(keys_.newest(), {}, verb);
                   return inner_->call(std::move(verb), std::move(finish));
                 }
                 scoped_->with_key(record->scope, id, std::move(finish),
                                   [this, scope = record->scope, verb = std::move(verb)](
                                       const NamedKey& key, StoreCompletion last) mutable {
                                     seal_decision(key, scope, verb);
                                     inner_->call(std::move(verb), std::move(last));
                                   });
               });
  }

  // If the record changes between the two steps, the second one does nothing.
  void rekey(Reseal verb, StoreCompletion done) {
    const RecordId id = verb.id;
    read_first(id, std::move(done),
               [this, id, verb = std::move(verb)](std::optional<Record> record,
                                                  StoreCompletion finish) mutable {
                 if (!record) return finish(StoreReply(Resolve::Reply{}));
                 if (!is_per_scope_ && !SealingKeys::is_of_scope(*record)) {
                   return bring(std::move(*record), std::move(verb), nullptr, std::move(finish));
                 }
                 const std::string scope = record->scope;
                 scoped_->read(
                     scope, id,
                     [this, record = std::move(*record), verb = std::move(verb),
                      finish = std::move(finish)](std::expected<Ring, StoreError> ring) mutable {
                       if (!ring) return finish(std::unexpected(ring.error()));
                       bring(std::move(record), std::move(verb), &**ring, std::move(finish));
                     });
               });
  }

  void bring(Record record, Reseal verb, const ScopeRing* ring, StoreCompletion done) {
    const NamedKey& to = is_per_scope_ ? ring->keys.front() : keys_.newest();
    auto ended = keys_.plan(std::move(record), verb, to, ring);
    if (ended) return done(std::move(*ended));
    if (verb.request) done = if_it_rests(std::move(done));
    inner_->call(std::move(verb), std::move(done));
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

  void accept(Accept verb, StoreCompletion done) {
    std::string scope = verb.as.scope;
    if (!keys_.seals()) return give_opened(std::move(verb), std::move(scope), std::move(done));
    const RecordId id = verb.as.id;
    scoped_->with_key(
        scope, id, std::move(done),
        [this, scope, verb = std::move(verb)](const NamedKey& key, StoreCompletion finish) mutable {
          std::vector<RecordId> ids{verb.as.id};
          for (const OtherName& other : verb.as.also) ids.push_back(other.id);
          seal_request(key, scope, ids, verb.request);
          give_opened(std::move(verb), std::move(scope), std::move(finish));
        });
  }

  // ---- the way out ----

  // The key is there before the work runs: otherwise nothing runs.
  void reserve(StoreCall verb, StoreCompletion done) {
    std::string scope;
    if (keys_.seals()) scope = std::get<Reserve>(verb).scope;
    if (!is_per_scope_) return give_opened(std::move(verb), std::move(scope), std::move(done));
    const RecordId id = std::get<Reserve>(verb).id;
    scoped_->with_key(
        scope, id, std::move(done),
        [this, scope, verb = std::move(verb)](const NamedKey&, StoreCompletion finish) mutable {
          give_opened(std::move(verb), std::move(scope), std::move(finish));
        });
  }

  void give_opened(StoreCall verb, std::string scope, StoreCompletion done) {
    inner_->call(std::move(verb), [this, scope = std::move(scope),
                                   done = std::move(done)](StoreResult result) mutable {
      if (!result) return done(std::move(result));
      auto& outcome = std::get<ReserveOutcome>(*result);
      if (const auto* execute = std::get_if<Execute>(&outcome); execute && keys_.seals()) {
        scopes_.put(execute->id, scope);
      }
      auto* const replay = std::get_if<Replay>(&outcome);
      if (replay == nullptr) return done(std::move(result));
      auto opened = open_replay(*replay, scope, nullptr);
      if (opened == Kept::whole) return done(std::move(result));
      if (opened != Kept::elsewhere) {
        return read_again(std::move(*replay), std::move(opened), std::move(done));
      }
      const auto kept = std::make_shared<Replay>(std::move(*replay));
      scoped_->open_in(
          scope, kept->id,
          [this, kept, scope](const ScopeRing* ring) { return open_replay(*kept, scope, ring); },
          [this, kept, done = std::move(done)](Opened last) mutable {
            if (last == Kept::whole) return done(StoreReply(ReserveOutcome(std::move(*kept))));
            read_again(std::move(*kept), std::move(last), std::move(done));
          });
    });
  }

  Opened open_replay(Replay& replay, const std::string& scope, const ScopeRing* ring) const {
    // Nobody keeps it opened for longer than its key.
    if (ring != nullptr) replay.expires_in = kept_for(replay);
    return keys_.open(replay.response, {scope, replay.id, number_of(replay.fence)}, ring);
  }
  static Millis kept_for(const Replay& replay) {
    return std::min<Millis>(replay.expires_in, limits::scope_keys_life);
  }

  // A cache in front of the store may have it under a key that is gone since, or from an attacker:
  // then the store has the answer.
  void read_again(Replay replay, Opened opened, StoreCompletion done) {
    const RecordId id = replay.id;
    inner_->call(Find{id}, [this, replay = std::move(replay), opened = std::move(opened),
                            done = std::move(done)](StoreResult result) mutable {
      if (!result) return done(std::move(result));
      auto& record = std::get<std::optional<Record>>(*result);
      const bool is_it = record && record->response && record->state == State::completed &&
                         record->completed_at == replay.completed_at;
      if (!is_it) return done(replayed(std::move(replay), std::move(opened)));
      open_found(std::move(*record), [replay = std::move(replay), opened = std::move(opened),
                                      done = std::move(done)](
                                         std::expected<Record, StoreError> found) mutable {
        if (!found) {
          // Its own words are the first ones', unless only a call failed.
          const bool is_known = !opened && found.error().code == StoreError::Code::damaged;
          return done(std::unexpected(is_known ? opened.error() : std::move(found.error())));
        }
        replay.response = std::move(*found->response);
        replay.expires_in = kept_for(replay);
        done(StoreReply(ReserveOutcome(std::move(replay))));
      });
    });
  }

  static StoreResult replayed(Replay replay, Opened opened) {
    if (!opened) return std::unexpected(std::move(opened.error()));
    drop_content(replay.response);  // Shredded.
    return StoreReply(ReserveOutcome(std::move(replay)));
  }

  void claim(StoreCall verb, StoreCompletion done) {
    inner_->call(std::move(verb), [this, done = std::move(done)](StoreResult result) mutable {
      if (!result) return done(std::move(result));
      auto& claimed = std::get<std::optional<Claimed>>(*result);
      if (!claimed) return done(std::move(result));
      auto opened = open_claimed(*claimed, nullptr);
      if (opened != Kept::elsewhere) return give_claimed(*claimed, opened, std::move(done));
      const auto kept = std::make_shared<Claimed>(std::move(*claimed));
      scoped_->open_in(
          kept->scope, kept->id,
          [this, kept](const ScopeRing* ring) { return open_claimed(*kept, ring); },
          [this, kept, done = std::move(done)](const Opened& last) mutable {
            give_claimed(*kept, last, std::move(done));
          });
    });
  }

  Opened open_claimed(Claimed& claimed, const ScopeRing* ring) const {
    return keys_.open_request(claimed.request, {claimed.scope, claimed.id, 0}, ring);
  }

  void give_claimed(Claimed& claimed, const Opened& opened, StoreCompletion done) {
    if (!opened) return put_back(claimed, opened.error(), std::move(done));
    if (keys_.seals()) scopes_.put(claimed.id, claimed.scope);
    done(StoreReply(std::optional(std::move(claimed))));
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
      if (!record) return done(std::move(result));
      open_found(std::move(*record),
                 [done = std::move(done)](std::expected<Record, StoreError> opened) mutable {
                   if (!opened) return done(std::unexpected(std::move(opened.error())));
                   done(StoreReply(std::optional(std::move(*opened))));
                 });
    });
  }

  /// Calls `then` with the record opened, a shredded answer without its content.
  template <class Then>
  void open_found(Record record, Then then) {
    auto opened = open_record(record, nullptr);
    if (!opened) return then(std::unexpected(std::move(opened.error())));
    if (*opened == Kept::whole) return then(std::move(record));
    const auto kept = std::make_shared<Record>(std::move(record));
    scoped_->open_in(
        kept->scope, kept->id,
        [this, kept](const ScopeRing* ring) { return open_record(*kept, ring); },
        [kept, then = std::move(then)](Opened last) mutable {
          if (!last) return then(std::unexpected(std::move(last.error())));
          if (*last == Kept::shredded) drop_content(*kept->response);
          then(std::move(*kept));
        });
  }

  // A record has only one of the two.
  Opened open_record(Record& record, const ScopeRing* ring) const {
    if (record.response) {
      auto opened =
          keys_.open(*record.response, {record.scope, record.id, number_of(record.fence())}, ring);
      if (opened != Kept::whole || !record.stored_request) return opened;
    }
    if (!record.stored_request) return Kept::whole;
    return keys_.open_request(*record.stored_request, {record.scope, record.id, 0}, ring);
  }

  void read_evidence(StoreCall verb, StoreCompletion done) {
    const RecordId id = std::get<ReadEvidence>(verb).id;
    inner_->call(std::move(verb), [this, id, done = std::move(done)](StoreResult result) mutable {
      if (!result) return done(std::move(result));
      auto& entries = std::get<std::vector<EvidenceEntry>>(*result);
      const bool needs_scope =
          keys_.seals() && std::ranges::any_of(entries, [](const EvidenceEntry& entry) {
            return SealingKeys::is_of_scope(key_of_evidence(entry.evidence));
          });
      if (needs_scope) return read_scope_of(id, std::move(entries), std::move(done));
      const auto opened = open_evidence_of(id, entries, nullptr);
      if (!opened) return done(std::unexpected(opened.error()));
      done(std::move(result));
    });
  }

  Opened open_evidence_of(const RecordId& id, std::vector<EvidenceEntry>& entries,
                          const ScopeRing* ring) const {
    for (EvidenceEntry& entry : entries) {
      auto opened = keys_.open_evidence(entry.evidence, {{}, id, number_of(entry.fence)}, ring);
      if (!opened) return opened;
    }
    return Kept::whole;
  }

  void read_scope_of(const RecordId& id, std::vector<EvidenceEntry> entries, StoreCompletion done) {
    const auto kept = std::make_shared<std::vector<EvidenceEntry>>(std::move(entries));
    inner_->call(Find{id}, [this, id, kept, done = std::move(done)](StoreResult result) mutable {
      if (!result) return done(std::move(result));
      const auto& record = std::get<std::optional<Record>>(*result);
      if (!record) {
        return done(std::unexpected(StoreError{
            StoreError::Code::damaged,
            "its evidence is sealed under a key of its scope, and the record, which names the "
            "scope, is gone",
            id}));
      }
      scoped_->open_in(
          record->scope, id,
          [this, id, kept](const ScopeRing* ring) {
            auto copy = *kept;
            auto opened = open_evidence_of(id, copy, ring);
            if (opened == Kept::whole) *kept = std::move(copy);
            return opened;
          },
          [kept, done = std::move(done)](const Opened& last) mutable {
            if (!last) return done(std::unexpected(last.error()));
            done(StoreReply(std::move(*kept)));
          });
    });
  }

  const SealingKeys keys_;
  const bool is_per_scope_;
  AttemptScopes scopes_;
  Unasked unasked_;
  std::optional<ScopeSealing> scoped_;
  std::optional<SealedJournals> journals_;
  std::optional<SealedTransactions> transactions_;
  std::unique_ptr<Store> inner_;  ///< Destroyed first: its completions use the others.
};

}  // namespace

std::unique_ptr<Store> make_sealed(std::unique_ptr<Store> inner, const EncryptionSettings& settings,
                                   std::function<MonotonicTime()> clock) {
  return std::make_unique<SealedStore>(std::move(inner), settings, std::move(clock));
}

}  // namespace idem
