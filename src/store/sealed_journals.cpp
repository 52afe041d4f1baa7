#include "store/sealed_journals.hpp"

#include "core/transitions/journals.hpp"

#include <algorithm>
#include <utility>

namespace idem {
namespace {

using Code = StoreError::Code;

StoreResult refused(std::string why) {
  return std::unexpected(StoreError{Code::refused, std::move(why)});
}

bool is_of_keys(std::string_view journal) { return journal.starts_with(scope_key_journals); }

}  // namespace

// ---- the way in ----

void SealedJournals::append(AppendLine verb, StoreCompletion done) {
  if (verb.journal.starts_with(kept_journals)) {
    return store_.call(std::move(verb), std::move(done));
  }
  if (is_of_keys(verb.journal)) {
    const bool is_ours = verb.line.empty() && number_of_scope_key(verb.journal);
    if (!keys_.seals() || !is_ours) {
      // By the store's own thread, as every reply.
      return store_.call(Count{}, [done = std::move(done)](const StoreResult&) mutable {
        done(refused("a scope's key is made by a process with encryption.secret_files alone"));
      });
    }
    return verb.behind == 0 ? make_key(std::move(verb), std::move(done))
                            : bring_key(std::move(verb), std::move(done));
  }
  if (keys_.seals()) seal_line(keys_.newest(), {verb.journal, verb.behind + 1}, verb.line);
  store_.call(std::move(verb), std::move(done));
}

// The new key names those before it, so that what was sealed under them is known as shredded. One
// that does not open has no name: its answers are damaged before a shred and behind it.
void SealedJournals::make_key(AppendLine verb, StoreCompletion done) {
  const std::string prefix(prefix_of_scope_key(verb.journal));
  unasked_.begin();
  scope_keys_->read(prefix, [this, verb = std::move(verb),
                             done = std::move(done)](std::expected<Ring, StoreError> ring) mutable {
    const bool is_lost = !ring && ring.error().code == Code::damaged;
    if (ring || is_lost) {
      std::vector<KeyName> former;
      if (ring) {
        former = (*ring)->former;
        for (const NamedKey& key : (*ring)->keys) {
          const bool is_new = std::ranges::find(former, key.ref.name) == former.end();
          if (is_new) former.push_back(key.ref.name);
        }
      }
      append_key(std::move(verb), std::move(former), std::move(done));
    } else {
      done(std::unexpected(std::move(ring.error())));
    }
    unasked_.end();
  });
}

void SealedJournals::append_key(AppendLine verb, std::vector<KeyName> former,
                                StoreCompletion done) {
  verb.line = ScopeKeyLine{random_cipher_key(), std::move(former)}.text();
  seal_line(keys_.newest(), {verb.journal, verb.behind + 1}, verb.line);
  const std::string prefix(prefix_of_scope_key(verb.journal));
  store_.call(std::move(verb), [this, prefix, done = std::move(done)](StoreResult result) mutable {
    scope_keys_->forget(prefix);
    done(std::move(result));
  });
}

void SealedJournals::bring_key(AppendLine verb, StoreCompletion done) {
  ReadLines last{verb.journal, verb.behind - 1, 1};
  unasked_.begin();
  store_.call(std::move(last),
              [this, verb = std::move(verb), done = std::move(done)](StoreResult result) mutable {
                auto* const reply = result ? &std::get<ReadLines::Reply>(*result) : nullptr;
                if (reply == nullptr) {
                  done(std::move(result));
                } else if (reply->last != verb.behind || reply->lines.empty()) {
                  done(StoreReply(AppendLine::Reply{false, reply->last, reply->now}));
                } else {
                  JournalLine& line = reply->lines.front();
                  const bool is_there = key_of_line(line.bytes) == keys_.newest().ref;
                  keys_.open_line(line, verb.journal);
                  if (line.is_damaged) {
                    done(std::unexpected(StoreError{
                        Code::damaged, "the key of a scope, in the journal " + verb.journal + ", " +
                                           (line.why.empty() ? "is damaged" : line.why)}));
                  } else if (is_there) {
                    done(StoreReply(AppendLine::Reply{false, reply->last, reply->now}));
                  } else {
                    verb.line = std::move(line.bytes);
                    seal_line(keys_.newest(), {verb.journal, verb.behind + 1}, verb.line);
                    store_.call(std::move(verb), std::move(done));
                  }
                }
                unasked_.end();
              });
}

void SealedJournals::drop(DropJournal verb, StoreCompletion done) {
  const std::string prefix(prefix_of_scope_key(verb.journal));
  if (prefix.empty() || scope_keys_ == nullptr) {
    return store_.call(std::move(verb), std::move(done));
  }
  store_.call(std::move(verb), [this, prefix, done = std::move(done)](StoreResult result) mutable {
    scope_keys_->forget(prefix);
    done(std::move(result));
  });
}

// ---- the way out ----

void SealedJournals::read(ReadLines verb, StoreCompletion done) {
  if (verb.journal.starts_with(kept_journals)) {
    return store_.call(std::move(verb), std::move(done));
  }
  std::string journal = verb.journal;
  store_.call(std::move(verb), [this, journal = std::move(journal),
                                done = std::move(done)](StoreResult result) mutable {
    if (!result) return done(std::move(result));
    for (JournalLine& line : std::get<ReadLines::Reply>(*result).lines) {
      keys_.open_line(line, journal);
      if (is_of_keys(journal)) line.bytes.clear();
    }
    done(std::move(result));
  });
}

}  // namespace idem
