#pragma once

#include <idem/store.hpp>

#include <string>
#include <unordered_map>
#include <variant>

/// How much of its quota a scope's records use, and whether there is room for one more. Counts only
/// records that were made by a reserve with a quota.
namespace idem {

/// A scope's usage. `next_key` is finer than the store's milliseconds.
struct Usage {
  std::uint64_t active = 0;
  std::uint64_t bytes = 0;
  std::chrono::microseconds next_key{};  ///< See admit(); since the epoch.
};

/// How one step changes it.
struct UsageChange {
  std::int64_t active = 0;
  std::int64_t bytes = 0;
  std::optional<std::chrono::microseconds> next_key{};

  bool is_none() const noexcept { return active == 0 && bytes == 0 && !next_key; }
  UsageChange operator-() const noexcept { return {-active, -bytes, std::nullopt}; }
};

/// The usage of this record.
UsageChange usage_of(const Record& record) noexcept;
/// The change from `before` to `after`.
UsageChange difference(const UsageChange& before, const UsageChange& after) noexcept;

/// A new key may begin.
struct Admitted {
  /// With a rate: the moment at which the next key is due at the rate's own pace. A scope that is
  /// ahead of it by `new_keys_at_once` has to wait (the generic cell rate algorithm, ITU-T I.371).
  std::optional<std::chrono::microseconds> next_key;
};

/// Whether a scope with `usage` may begin a new key now; else when to ask again. If a key has to
/// end first, that is the average time until one does, as each lives for `retention`.
std::variant<Admitted, QuotaExceeded> admit(const Quota& quota, const Usage& usage,
                                            Millis retention, StoreTime now) noexcept;

/// Whether the record of a released key, which is counted already, may grow by `bytes` and run
/// again. None: it may; else when to ask again.
std::optional<QuotaExceeded> refuse_growth(const Quota& quota, const Usage& usage,
                                           std::uint64_t bytes, Millis retention) noexcept;

/// The usage of all scopes. One thread uses it.
class UsageBook {
 public:
  Usage of(const std::string& scope) const;
  /// Returns the new usage. Never below zero, even if earlier changes were lost.
  Usage add(const std::string& scope, const UsageChange& change);

 private:
  std::unordered_map<std::string, Usage> scopes_;
};

/// The sum; zero instead of a negative one.
std::uint64_t plus(std::uint64_t now, std::int64_t change) noexcept;

}  // namespace idem
