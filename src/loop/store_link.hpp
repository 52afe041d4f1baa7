#pragma once

#include "loop/loop.hpp"

#include <idem/store.hpp>

namespace idem {

struct AskStore {
  Loop& loop;
  Store& store;
  StoreCall& call;
  void operator()(Resumption<StoreResult> answered) const;
};

/// `co_await` of it, named, asks the store and resumes the calling coroutine on its own loop with
/// the reply. The replies of one commit reach a loop by one wake-up. `call` is moved from.
inline Wait<StoreResult, AskStore> ask_store(Loop& loop, Store& store, StoreCall& call) {
  return suspend<StoreResult>(AskStore{loop, store, call});
}

}  // namespace idem
