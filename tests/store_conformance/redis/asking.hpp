#pragma once

#include "store/redis/redis_store.hpp"
#include "store_conformance/harness.hpp"
#include "support/redis.hpp"

/// Stores in Redis by the servers' own clocks, for tests that need more than conformance.
namespace idem::test {

using Opened = std::expected<std::unique_ptr<Store>, StoreError>;

inline std::unique_ptr<Store> open_at(const std::string& url) {
  auto store = open_redis(url, test_settings(), {});
  if (store) return std::move(*store);
  ADD_FAILURE() << store.error().detail;
  std::abort();
}

template <class Verb>
std::expected<typename Verb::Reply, StoreError> try_ask(Store& store, Verb verb) {
  if constexpr (std::is_same_v<Verb, Reserve>) verb.generation = store.identity().generation;
  return ask_and_wait(store, std::move(verb));
}

inline Execute run(Store& store, int key_number, int token_number = 1) {
  const auto outcome = try_ask(store, a_reserve(key_number, token_number));
  if (outcome && is<Execute>(*outcome)) return std::get<Execute>(*outcome);
  ADD_FAILURE() << (outcome ? describe(*outcome) : outcome.error().detail);
  return {};
}

}  // namespace idem::test
