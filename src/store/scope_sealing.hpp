#pragma once

#include "store/scope_keys.hpp"
#include "store/sealing_keys.hpp"
#include "store/unasked.hpp"

#include <idem/store.hpp>

#include <optional>
#include <string>
#include <utility>

namespace idem {

/// With which key a wrapper seals for a scope, and by which it opens. Safe from any thread.
class ScopeSealing {
 public:
  /// All outlive it; `store` has answered all calls before the end.
  ScopeSealing(Store& store, const SealingKeys& keys, bool is_on, ScopeKeys::Clock clock,
               Unasked& unasked)
      : keys_(keys), is_on_(is_on), unasked_(unasked) {
    if (keys.seals()) scope_keys_.emplace(store, keys, is_on, std::move(clock));
  }

  /// Each scope seals under a key of its own.
  bool is_on() const noexcept { return is_on_; }
  /// Null without secrets.
  ScopeKeys* scope_keys() noexcept { return scope_keys_ ? &*scope_keys_ : nullptr; }

  /// Calls `then` with the key that seals for the scope and with `done`: at once, or once it was
  /// read on the store's thread. Without a key `done` has the error, which names the record; for an
  /// owner who repeats (`may_heal`) it is none for good.
  template <class Then>
  void with_key(const std::string& scope, const RecordId& id, StoreCompletion done, Then then,
                bool may_heal = false) {
    if (!is_on_) return then(keys_.newest(), std::move(done));
    const std::string prefix = scope_key_prefix(scope);
    if (const Ring known = scope_keys_->cached(prefix)) {
      if (scope_keys_->is_to_be_refreshed(prefix)) {
        unasked_.begin();
        scope_keys_->read(prefix, [this](const auto&) { unasked_.end(); });
      }
      return then(known->keys.front(), std::move(done));
    }
    read(scope, id,
         [may_heal, done = std::move(done),
          then = std::move(then)](std::expected<Ring, StoreError> ring) mutable {
           if (ring) return then((*ring)->keys.front(), std::move(done));
           if (may_heal) ring.error() = {StoreError::Code::unavailable, ring.error().detail};
           done(std::unexpected(std::move(ring.error())));
         });
  }

  /// `open(ring)` opens something whole, or leaves it: by the keys of the scope that are in memory,
  /// else by those in the store. `then` has the last outcome, which is not `elsewhere`.
  template <class Open, class Then>
  void open_in(const std::string& scope, const RecordId& id, Open open, Then then) {
    if (const Ring known = scope_keys_->cached(scope_key_prefix(scope))) {
      auto opened = open(&*known);
      if (opened == Kept::whole) return then(std::move(opened));
    }
    read(scope, id,
         [open = std::move(open),
          then = std::move(then)](std::expected<Ring, StoreError> ring) mutable {
           then(ring ? open(&**ring) : Opened(std::unexpected(std::move(ring.error()))));
         });
  }

  /// Calls `then` with the keys as they lie in the store. Damage names the record.
  template <class Then>
  void read(const std::string& scope, const RecordId& id, Then then) {
    unasked_.begin();
    scope_keys_->read(scope_key_prefix(scope), [this, id, then = std::move(then)](
                                                   std::expected<Ring, StoreError> ring) mutable {
      const bool is_damaged = !ring && ring.error().code == StoreError::Code::damaged;
      if (is_damaged) ring.error().record = id;
      then(std::move(ring));
      unasked_.end();
    });
  }

 private:
  const SealingKeys& keys_;
  const bool is_on_;
  Unasked& unasked_;
  std::optional<ScopeKeys> scope_keys_;
};

}  // namespace idem
