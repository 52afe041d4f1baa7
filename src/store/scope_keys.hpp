#pragma once

#include "core/record/scope_key_line.hpp"
#include "core/record/sealed_parts.hpp"

#include <idem/store.hpp>

#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// The keys of scopes in the store and in memory.
namespace idem {

class SealingKeys;

/// The keys of one scope, as they were read at one moment. Immutable.
struct ScopeRing {
  std::vector<NamedKey> keys;   ///< The newest first, which seals.
  std::vector<KeyName> former;  ///< Those before the newest: shredded, unless among `keys`.
  std::string unreadable;       ///< Why an older one does not open; empty: all open.
  MonotonicTime since{};        ///< When the reading began.

  const NamedKey* find(const KeyName& name) const noexcept;
  bool was_shredded(const KeyName& name) const noexcept;
};
using Ring = std::shared_ptr<const ScopeRing>;

/// Reads the keys of scopes from a store, keeps them for limits::scope_keys_life, and makes the
/// first one of a scope. Safe from any thread.
class ScopeKeys {
 public:
  using Clock = std::function<MonotonicTime()>;
  using Then = std::move_only_function<void(std::expected<Ring, StoreError>)>;

  /// `makes`: a scope without a key gets one. `store` and `secrets` outlive it, and `store` has
  /// answered all calls before the end. Only if `secrets` seal.
  ScopeKeys(Store& store, const SealingKeys& secrets, bool makes, Clock clock)
      : store_(store), secrets_(secrets), makes_(makes), clock_(std::move(clock)) {}

  /// As it was read at most limits::scope_keys_life ago; null: read().
  Ring cached(const std::string& prefix);
  /// True once in a ring's life, when half of it is over: the caller has to read it anew.
  bool is_to_be_refreshed(const std::string& prefix);
  /// Reads them anew, and calls `then` on the store's thread. The reading begins behind this call,
  /// and is one for all who wait for it. The error `damaged` names no record: the newest key does
  /// not open.
  void read(const std::string& prefix, Then then);
  /// This process uses no key of the scope that it has read before.
  void forget(std::string_view prefix);

 private:
  struct Reading;
  using ReadingRef = std::shared_ptr<Reading>;

  void begin(const std::string& prefix);
  void list(const ReadingRef& reading);
  void read_next(const ReadingRef& reading);
  std::optional<StoreError> take(Reading& reading, const std::string& journal, JournalLine line);
  void make(const ReadingRef& reading);
  void finish(const ReadingRef& reading, std::optional<StoreError> error);

  Store& store_;
  const SealingKeys& secrets_;
  const bool makes_;
  const Clock clock_;

  struct Entry {
    Ring ring;
    bool is_being_read = false;
  };
  Entry* find(const std::string& prefix);

  std::mutex mutex_;
  std::unordered_map<std::string, Entry> young_;
  std::unordered_map<std::string, Entry> old_;
  struct Waiting {
    std::vector<Then> now{};
    std::vector<Then> next{};  ///< They came while a reading was under way.
  };
  std::unordered_map<std::string, Waiting> waiting_;
  std::uint64_t forgets_ = 0;
};

}  // namespace idem
