#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace provider {

/// One effect: for a test, money that moved. Or a declined request, which is no effect, and is only
/// in exports.
struct Effect {
  std::string key;        ///< Idempotency-Key as received; empty when there was none.
  std::string operation;  ///< Idem-Operation, Idem-Fence, Idem-Attempt as received.
  std::string fence;
  std::string attempt;
  std::string method;
  std::string target;
  std::size_t body_bytes = 0;
  std::uint64_t body_digest = 0;
  std::string answer;     ///< The JSON that a client gets, also at a later GET.
  std::string reference;  ///< The body's, for a caller that has no key; empty when there was none.
  std::int64_t at = 0;    ///< Milliseconds since 1970.
  std::chrono::steady_clock::time_point made = std::chrono::steady_clock::now();
};

/// A query; empty members match all.
struct Query {
  bool refunds = false;
  std::string key{};
  std::string reference{};
  std::string operation{};
  /// Later effects are not listed yet.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

/// True for a path of /refunds. Every other path is a charge.
bool is_refund(std::string_view target);

/// Every effect in the order in which it happened, and how often each key arrived. It never looks
/// a key up before it charges: duplicates are exactly what it exists to show.
class Ledger {
 public:
  void arrived(std::string_view key);

  /// The number the next effect will have. Numbers are never used twice, also after clear().
  std::uint64_t next() const { return first_ + effects_.size(); }
  void charge(Effect effect);

  /// Records a declined request.
  void decline(Effect effect);

  const Effect* find(std::uint64_t number) const;
  /// Effects and declined requests in their order, from 0; null behind the last.
  struct Line {
    std::string id;
    const Effect* effect = nullptr;
    bool happened = true;
  };
  Line line(std::size_t index) const;
  void clear();

  /// The answers of the charges, or of the refunds, that match. A JSON list, in their order.
  std::string answers(const Query& query) const;

  std::string json() const;
  std::string json_of(std::string_view key) const;
  std::string text() const;
  std::string summary() const;

 private:
  struct PerKey {
    std::uint64_t arrivals = 0;
    std::vector<std::uint64_t> effects;
  };

  std::string json_of(const PerKey& entry, bool with_calls) const;

  std::uint64_t first_ = 1;
  std::uint64_t arrivals_ = 0;
  std::deque<Effect> effects_;
  std::deque<Effect> declined_;
  std::deque<std::int64_t> lines_;  // Indexes of effects_, and -1 - those of declined_.
  std::map<std::string, PerKey, std::less<>> keys_;
};

}  // namespace provider
