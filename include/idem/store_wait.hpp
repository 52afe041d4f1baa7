#pragma once

#include <idem/store.hpp>

#include <future>
#include <memory>
#include <string>
#include <string_view>

/// @file
/// The store port for callers that may block.
namespace idem::inline v0_1 {

/// Why this thread must not wait for a store: it is in a transaction's work, or is a store's own,
/// so that the wait would never end. Empty: it may wait.
[[nodiscard]] std::string_view why_not_to_wait() noexcept;

/// Wakes the threads up that this one left work to and did not wake yet. To be called before any
/// wait for such a thread on an event loop of ours; ask_and_wait() does. No effect elsewhere.
void about_to_wait() noexcept;

/// Asks and waits for the reply; for tests, start-up and command lines, never on an event loop. If
/// why_not_to_wait() has a reason, returns `unavailable` at once without asking.
template <class Verb>
[[nodiscard]] std::expected<typename Verb::Reply, StoreError> ask_and_wait(Store& store,
                                                                           Verb verb) {
  using Result = std::expected<typename Verb::Reply, StoreError>;
  if (const auto why = why_not_to_wait(); !why.empty()) {
    return std::unexpected(StoreError{StoreError::Code::unavailable, std::string(why)});
  }
  // Shared, because the store's thread is still inside set_value when the waiter wakes and leaves.
  auto promise = std::make_shared<std::promise<Result>>();
  auto reply = promise->get_future();
  ask(store, std::move(verb), [promise](Result result) { promise->set_value(std::move(result)); });
  about_to_wait();
  return reply.get();
}

}  // namespace idem::inline v0_1
