#include "core/transitions/foresight.hpp"

#include "core/transitions/store_steps.hpp"

namespace idem {
namespace {

std::uint64_t generation_of(const StoreCall& call) {
  if (const auto* reserve = std::get_if<Reserve>(&call)) return reserve->generation;
  const auto* accept = std::get_if<Accept>(&call);
  return accept != nullptr ? accept->as.generation : 0;
}

}  // namespace

Foreseen foresee(const StoreCall& call, SnapshotTable& table, StoreTime now) {
  transitions::FenceCounter fences{table.highest_fence()};
  Naming naming{.generation = generation_of(call)};
  StoreCall made = call;
  table.begin_step();
  StoreResult result = do_step(made, {table, fences, table, now, naming});
  return {std::move(result), table.take_write()};
}

}  // namespace idem
