#pragma once

#include "store/verb_traits.hpp"

#include <idem/store.hpp>

#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace idem {

/// The token of the call's attempt; none: the verb has none.
std::optional<Token> token_of(const StoreCall& call) noexcept;

/// What a reserve or a claim asks for, so that it can be given back.
struct AskedFor {
  RecordId id;                     ///< Not of a Claim.
  std::vector<RecordId> others{};  ///< Other names under which the record may lie.
  Token token;
  Millis lease{};
};

/// The calls that a store has not answered. One that has waited for too long is late: its asker
/// gets an error, and its reply, when it comes, belongs to nobody. Safe from any thread.
class CallsUnderWay {
 public:
  struct Call {
    StoreCompletion done;  ///< Null: it is late.
    std::size_t verb = 0;
    VerbTraits traits;
    std::optional<Token> token;
    std::optional<AskedFor> asked_for;
    MonotonicTime due{};
    bool has_no_end = false;  ///< Its asker needs to know how it ended, however long it takes.
    bool is_late = false;
  };
  using Ticket = std::list<Call>::iterator;

  explicit CallsUnderWay(Millis silence_max) : silence_max_(silence_max) {}

  /// `wake`: nothing was under way, so that nobody waits for when it becomes late.
  struct Begun {
    Ticket ticket;
    bool wake = false;
  };
  Begun begin(const StoreCall& call, StoreCompletion done);
  /// The call, whose reply has come. Exactly once.
  Call end(Ticket ticket);

  /// An asker that was given up.
  struct Silent {
    StoreCompletion done;
    StoreError::Code code{};
  };
  struct Late {
    std::vector<Silent> askers;
    bool opens = false;        ///< One of them says that the store does not answer,
    bool would_write = false;  ///< and would have written.
    bool in_question = false;  ///< One that may take long is still waited for.
  };
  /// Those that have become late. One that may take long becomes so only while the store is known
  /// not to answer (`is_open`); otherwise it is waited for once more.
  Late take_late(MonotonicTime now, bool is_open);
  /// When the next one becomes late. None: nothing is under way; the next begin() says `wake`.
  std::optional<MonotonicTime> next();

  /// Whether this very call of the attempt is late and not answered: a repeat would only wait
  /// beside it.
  bool repeats_a_late_one(const StoreCall& call, const Token& token) const;
  /// Whether a late call would write: then a read's success proves nothing.
  bool owes_writes() const;

 private:
  const Millis silence_max_;
  mutable std::mutex mutex_;
  std::list<Call> waiting_;  ///< In the order in which they become late.
  std::list<Call> late_;
  std::multiset<std::pair<Token, std::size_t>> late_verbs_;
  std::atomic<bool> any_late_{false};  ///< Written under the lock.
  std::size_t late_writes_ = 0;
  bool rests_ = true;
};

}  // namespace idem
