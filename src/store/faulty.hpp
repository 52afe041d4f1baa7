#pragma once

#include <idem/store.hpp>

#include <functional>
#include <memory>
#include <optional>

/// A store wrapper that loses, delays and reorders calls and replies, as a network does. For tests;
/// nothing here sleeps.
namespace idem {

enum class Fault : std::uint8_t {
  none,
  refuse,       ///< Answered `unavailable`; nothing was done.
  lose_call,    ///< Answered `in_doubt`; nothing was done.
  lose_reply,   ///< Done, and answered `in_doubt`.
  late_call,    ///< Answered `in_doubt`, and done only after later calls.
  delay_call,   ///< Done only after later calls have overtaken it.
  delay_reply,  ///< Done at once, and answered after later ones.
};

struct FaultPlan {
  /// The same seed gives the same faults for the same calls in the same order.
  std::uint64_t seed = 1;
  /// How many calls in a thousand get each fault.
  unsigned refuse = 0;
  unsigned lose_call = 0;
  unsigned lose_reply = 0;
  unsigned late_call = 0;
  unsigned delay_call = 0;
  unsigned delay_reply = 0;
  /// A delayed call or reply waits for 1 to this many later calls.
  unsigned delay_calls_max = 8;
  /// If it returns a fault, that one applies instead of the seed's. `number` counts calls from 1.
  std::function<std::optional<Fault>(const StoreCall& call, std::uint64_t number)> decide;
};

class FaultyStore : public Store {
 public:
  /// Releases all delayed calls and replies now, in an order that the seed chooses.
  virtual void flush() = 0;
};

/// Completions run on the inner store's thread, also those of calls that never reached it. The
/// destructor flushes.
std::unique_ptr<FaultyStore> make_faulty(std::unique_ptr<Store> inner, FaultPlan plan);

}  // namespace idem
