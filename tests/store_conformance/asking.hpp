#pragma once

#include "store_conformance/harness.hpp"

#include <latch>

/// Asks stores that a test opens by itself, each in the store's own generation.
namespace idem::test {

inline Reserve a_reserve_in(const Store& store, int key_number, int token_number = 1) {
  Reserve verb = a_reserve(key_number, token_number);
  verb.generation = store.identity().generation;
  return verb;
}

template <class Verb>
std::expected<typename Verb::Reply, StoreError> try_ask(Store& store, Verb verb) {
  if constexpr (std::is_same_v<Verb, Reserve> || std::is_same_v<Verb, PutRecord>) {
    verb.generation = store.identity().generation;
  }
  return ask_and_wait(store, std::move(verb));
}

/// All before the first reply, as they are.
inline std::vector<StoreResult> ask_at_once(Store& store, std::vector<StoreCall> calls) {
  std::vector<StoreResult> results(calls.size());
  std::latch done(static_cast<std::ptrdiff_t>(calls.size()));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    store.call(std::move(calls[i]), [&, i](StoreResult result) {
      results[i] = std::move(result);
      done.count_down();
    });
  }
  done.wait();
  return results;
}

/// The attempt that this asker wins; fails the test when it wins none.
inline Execute run(Store& store, int key_number, int token_number = 1) {
  const auto outcome = try_ask(store, a_reserve(key_number, token_number));
  if (outcome && is<Execute>(*outcome)) return std::get<Execute>(*outcome);
  ADD_FAILURE() << (outcome ? describe(*outcome) : outcome.error().detail);
  return {};
}

}  // namespace idem::test
