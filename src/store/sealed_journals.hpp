#pragma once

#include "store/scope_keys.hpp"
#include "store/sealing_keys.hpp"
#include "store/unasked.hpp"

#include <idem/store.hpp>

namespace idem {

/// The lines of all journals but the audit's, which is verified without keys: sealed on the way in
/// and opened on the way out. Two appends of one text differ in bytes; compare what is read.
///
/// The journals of scopes' keys (scope_keys.hpp) are written here alone, and their lines are given
/// out without bytes. An AppendLine without a line makes the key of that number behind 0, and else
/// brings the last line under the newest secret (`appended` is false: it is there).
class SealedJournals {
 public:
  /// All outlive it. `scope_keys`: null without secrets.
  SealedJournals(Store& store, const SealingKeys& keys, ScopeKeys* scope_keys, Unasked& unasked)
      : store_(store), keys_(keys), scope_keys_(scope_keys), unasked_(unasked) {}

  void append(AppendLine verb, StoreCompletion done);
  void read(ReadLines verb, StoreCompletion done);
  void drop(DropJournal verb, StoreCompletion done);

 private:
  void make_key(AppendLine verb, StoreCompletion done);
  void append_key(AppendLine verb, std::vector<KeyName> former, StoreCompletion done);
  void bring_key(AppendLine verb, StoreCompletion done);

  Store& store_;
  const SealingKeys& keys_;
  ScopeKeys* scope_keys_;
  Unasked& unasked_;
};

}  // namespace idem
