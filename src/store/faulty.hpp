#pragma once

#include <idem/store.hpp>

#include <functional>
#include <memory>
#include <optional>

/// A store between whose caller and itself things go wrong, as they do with one at the other end of
/// a wire. For tests; nothing here sleeps.
namespace idem {

enum class Fault : std::uint8_t {
  none,
  refuse,       ///< Answered `unavailable`; nothing was done.
  lose_call,    ///< Answered `in_doubt`; nothing was done.
  lose_reply,   ///< Done, and answered `in_doubt`.
  late_call,    ///< Answered `in_doubt`, and done only after later calls.
  delay_call,   ///< Done only after later calls, which so overtake it.
  delay_reply,  ///< Done at once, and answered after later ones.
};

struct FaultPlan {
  /// The same seed gives the same faults for the same calls in the same order.
  std::uint64_t seed = 1;
  /// How many calls in a thousand meet each.
  unsigned refuse = 0;
  unsigned lose_call = 0;
  unsigned lose_reply = 0;
  unsigned late_call = 0;
  unsigned delay_call = 0;
  unsigned delay_reply = 0;
  /// A delayed one waits for 1 to so many later calls.
  unsigned delay_calls_max = 8;
  /// Decides instead of the seed where it answers. `number` counts calls from 1.
  std::function<std::optional<Fault>(const StoreCall& call, std::uint64_t number)> decide;
};

class FaultyStore : public Store {
 public:
  /// Lets go of all that is delayed now, in an order of the seed's choice.
  virtual void flush() = 0;
};

/// Completions come on the inner store's thread, also those of calls that never reached it. The
/// destructor flushes.
std::unique_ptr<FaultyStore> make_faulty(std::unique_ptr<Store> inner, FaultPlan plan);

}  // namespace idem
