#include "store/scope_keys.hpp"

#include "store/sealing_keys.hpp"

#include <algorithm>
#include <utility>

namespace idem {
namespace {

using Code = StoreError::Code;

}  // namespace

const NamedKey* ScopeRing::find(const KeyName& name) const noexcept {
  const auto found = std::ranges::find(keys, KeyRef{KeyKind::scope, name}, &NamedKey::ref);
  return found != keys.end() ? &*found : nullptr;
}

bool ScopeRing::was_shredded(const KeyName& name) const noexcept {
  return unreadable.empty() && std::ranges::find(former, name) != former.end() &&
         find(name) == nullptr;
}

// ---- what is in memory ----

/// Under the mutex.
ScopeKeys::Entry* ScopeKeys::find(const std::string& prefix) {
  for (auto* const half : {&young_, &old_}) {
    if (const auto found = half->find(prefix); found != half->end()) return &found->second;
  }
  return nullptr;
}

Ring ScopeKeys::cached(const std::string& prefix) {
  const MonotonicTime now = clock_();
  const std::lock_guard lock(mutex_);
  const Entry* const entry = find(prefix);
  const bool lives = entry != nullptr && now - entry->ring->since < limits::scope_keys_life;
  return lives ? entry->ring : nullptr;
}

bool ScopeKeys::is_to_be_refreshed(const std::string& prefix) {
  const MonotonicTime now = clock_();
  const std::lock_guard lock(mutex_);
  Entry* const entry = find(prefix);
  if (entry == nullptr || entry->is_being_read) return false;
  entry->is_being_read = now - entry->ring->since >= limits::scope_keys_life / 2;
  return entry->is_being_read;
}

void ScopeKeys::forget(std::string_view prefix) {
  const std::string name(prefix);
  const std::lock_guard lock(mutex_);
  ++forgets_;  // What is being read now may be older than this.
  young_.erase(name);
  old_.erase(name);
}

// ---- reading ----

struct ScopeKeys::Reading {
  std::string prefix;
  std::uint64_t forgets = 0;
  int tries = 0;
  std::vector<JournalSummary> journals{};  ///< Those that are not read yet.
  std::shared_ptr<ScopeRing> ring{};
};

void ScopeKeys::read(const std::string& prefix, Then then) {
  {
    const std::lock_guard lock(mutex_);
    const auto [waiting, is_first] = waiting_.try_emplace(prefix);
    (is_first ? waiting->second.now : waiting->second.next).push_back(std::move(then));
    if (!is_first) return;
  }
  begin(prefix);
}

void ScopeKeys::begin(const std::string& prefix) {
  const auto reading = std::make_shared<Reading>(Reading{prefix});
  {
    const std::lock_guard lock(mutex_);
    reading->forgets = forgets_;
  }
  list(reading);
}

void ScopeKeys::list(const ReadingRef& reading) {
  if (++reading->tries > limits::scope_keys_read_tries_max) {
    return finish(reading, StoreError{Code::unavailable, "the keys of a scope keep changing"});
  }
  reading->ring = std::make_shared<ScopeRing>();
  reading->ring->since = clock_();
  ListJournals listing{reading->prefix, {}, limits::scope_keys_alive_max + 1};
  store_.call(std::move(listing), [this, reading](StoreResult result) {
    if (!result) return finish(reading, std::move(result.error()));
    reading->journals = std::get<std::vector<JournalSummary>>(std::move(*result));
    if (reading->journals.size() > limits::scope_keys_alive_max) {
      return finish(reading, StoreError{Code::damaged, "its scope has too many keys: " +
                                                           reading->journals.back().name});
    }
    if (reading->journals.empty() && makes_) return make(reading);
    read_next(reading);
  });
}

// From the newest to the oldest.
void ScopeKeys::read_next(const ReadingRef& reading) {
  if (reading->journals.empty()) {
    // Read so slowly that a shred may have gone on meanwhile: nothing may be sealed under these.
    const bool is_old = clock_() - reading->ring->since >= limits::scope_keys_life;
    return is_old ? list(reading) : finish(reading, std::nullopt);
  }
  JournalSummary next = std::move(reading->journals.back());
  reading->journals.pop_back();
  ReadLines of{next.name, next.last - 1, 1};
  store_.call(std::move(of), [this, reading, journal = std::move(next.name)](StoreResult result) {
    if (!result) return finish(reading, std::move(result.error()));
    auto& reply = std::get<ReadLines::Reply>(*result);
    if (reply.lines.empty()) return list(reading);  // It was dropped meanwhile.
    auto error = take(*reading, journal, std::move(reply.lines.front()));
    if (error) return finish(reading, std::move(error));
    read_next(reading);
  });
}

std::optional<StoreError> ScopeKeys::take(Reading& reading, const std::string& journal,
                                          JournalLine line) {
  ScopeRing& ring = *reading.ring;
  const bool is_newest = ring.keys.empty() && ring.unreadable.empty();
  secrets_.open_line(line, journal);
  const auto parsed = line.is_damaged ? std::nullopt : ScopeKeyLine::parse(line.bytes);
  if (!parsed) {
    const std::string why = line.why.empty() ? "is damaged" : line.why;
    ring.unreadable = "a key of its scope, in the journal " + journal + ", " + why;
    if (is_newest) return StoreError{Code::damaged, ring.unreadable};
    return std::nullopt;
  }
  ring.keys.push_back(key_of_scope(parsed->key));
  if (is_newest) ring.former = parsed->former;
  return std::nullopt;
}

// The process that appends first has made the key; all then read what lies there, as another
// process may have gone on to the next number meanwhile.
void ScopeKeys::make(const ReadingRef& reading) {
  const std::string journal = scope_key_journal(reading->prefix, 1);
  AppendLine append{journal, 0, ScopeKeyLine{random_cipher_key()}.text()};
  seal_line(secrets_.newest(), {journal, 1}, append.line);
  store_.call(std::move(append), [this, reading](StoreResult result) {
    if (!result && result.error().code != Code::in_doubt) {
      return finish(reading, std::move(result.error()));
    }
    list(reading);
  });
}

void ScopeKeys::finish(const ReadingRef& reading, std::optional<StoreError> error) {
  std::vector<Then> waiting;
  bool goes_on = false;
  {
    const std::lock_guard lock(mutex_);
    const auto asked = waiting_.find(reading->prefix);
    waiting = std::exchange(asked->second.now, std::exchange(asked->second.next, {}));
    goes_on = !asked->second.now.empty();
    if (!goes_on) waiting_.erase(asked);
    for (auto* const half : {&young_, &old_}) {
      const auto mark = half->find(reading->prefix);
      if (error && mark != half->end()) mark->second.is_being_read = false;
    }
    if (!error && reading->forgets == forgets_) {
      if (young_.size() >= limits::scope_keys_cached_max / 2) old_ = std::exchange(young_, {});
      young_.insert_or_assign(reading->prefix, Entry{reading->ring});
    }
  }
  if (goes_on) begin(reading->prefix);
  for (Then& then : waiting) {
    if (error) {
      then(std::unexpected(*error));
    } else {
      then(Ring(reading->ring));
    }
  }
}

}  // namespace idem
