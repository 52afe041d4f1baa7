#pragma once

#include <idem/store.hpp>

#include <string>
#include <unordered_map>
#include <variant>

/// What the records of a scope take of its quota, and whether there is room for one more. Of
/// records that were made by a reserve with a quota; all others cost nobody anything.
namespace idem {

/// What a scope has. A moment of the rate is finer than the store's milliseconds.
struct Usage {
  std::uint64_t active = 0;
  std::uint64_t bytes = 0;
  std::chrono::microseconds next_key{};  ///< See admit(); since the epoch.
};

/// What one step adds to it, or takes away.
struct UsageChange {
  std::int64_t active = 0;
  std::int64_t bytes = 0;
  std::optional<std::chrono::microseconds> next_key{};

  bool is_none() const noexcept { return active == 0 && bytes == 0 && !next_key; }
  UsageChange operator-() const noexcept { return {-active, -bytes, std::nullopt}; }
};

/// What this record takes.
UsageChange usage_of(const Record& record) noexcept;
/// What changes where `after` takes the place of `before`.
UsageChange difference(const UsageChange& before, const UsageChange& after) noexcept;

/// One key more may begin.
struct Admitted {
  /// Of a rate: the moment at which this key, and all before it, are due when they come at the
  /// rate's own pace. Who is ahead of it by `new_keys_at_once` has to wait (the generic cell rate
  /// algorithm, ITU-T I.371).
  std::optional<std::chrono::microseconds> next_key;
};

/// Whether a scope that has `usage` may begin one key more now; else when to ask again. Where keys
/// have to end first that is when one of them does on average, as each lives for `retention`.
std::variant<Admitted, QuotaExceeded> admit(const Quota& quota, const Usage& usage,
                                            Millis retention, StoreTime now) noexcept;

/// Whether a record that is counted already may grow by `bytes`: one that was released and comes
/// back, and whose answer may be as large as any. Nothing: it may; else when to ask again.
std::optional<QuotaExceeded> refuse_growth(const Quota& quota, const Usage& usage,
                                           std::uint64_t bytes, Millis retention) noexcept;

/// Of all scopes that have something; one thread's.
class UsageBook {
 public:
  Usage of(const std::string& scope) const;
  /// Answers what it is then. Never below zero, whatever was lost before.
  Usage add(const std::string& scope, const UsageChange& change);

 private:
  std::unordered_map<std::string, Usage> scopes_;
};

/// `now`, and never below zero.
std::uint64_t plus(std::uint64_t now, std::int64_t change) noexcept;

}  // namespace idem
