#pragma once

#include <idem/store.hpp>

#include <future>
#include <memory>

/// @file
/// The store port for those who may block.
namespace idem {

/// Waits for the reply; for tests, start-up and command lines, never on an event loop.
template <class Verb>
std::expected<typename Verb::Reply, StoreError> ask_and_wait(Store& store, Verb verb) {
  using Result = std::expected<typename Verb::Reply, StoreError>;
  // Shared, because the store's thread is still inside set_value when the waiter wakes and leaves.
  auto promise = std::make_shared<std::promise<Result>>();
  auto reply = promise->get_future();
  ask(store, std::move(verb), [promise](Result result) { promise->set_value(std::move(result)); });
  return reply.get();
}

}  // namespace idem
