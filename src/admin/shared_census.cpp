#include "admin/shared_census.hpp"

#include "loop/store_link.hpp"

#include <algorithm>

namespace idem::admin {
namespace {

// A census of a small store costs less than what it would spare.
constexpr Millis quick_max{20};
constexpr int rest_factor = 10;

}  // namespace

Millis SharedCensus::rest_after(Millis took) noexcept {
  return took > quick_max ? rest_factor * took : Millis(0);
}

Task<SharedCensus::Result> SharedCensus::fresh() {
  const MonotonicTime began = MonotonicClock::now();
  StoreCall count = Count{};
  auto asking = ask_store(loop_, store_, count);
  auto counted = co_await asking;
  if (!counted) {
    last_.reset();  // An answer from memory would hide that the store does not answer.
    co_return std::unexpected(std::move(counted.error()));
  }
  last_ = std::get<Census>(*counted);
  asked_at_ = began;
  took_ = MonotonicClock::now() - began;
  co_return *last_;
}

Task<SharedCensus::Result> SharedCensus::recent(Millis age) {
  if (last_) {
    const Millis passed = MonotonicClock::now() - asked_at_;
    if (passed < std::max(age, rest_after(took_))) {
      Census census = *last_;
      census.now += passed;
      co_return census;
    }
  }
  auto asking = fresh();
  auto counted = co_await asking;
  co_return counted;
}

}  // namespace idem::admin
