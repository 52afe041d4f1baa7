#include "loop/store_link.hpp"

namespace idem {

void AskStore::operator()(Resumption<StoreResult> answered) const {
  store.call(std::move(call),
             [&to = loop, answered = std::move(answered)](StoreResult result) mutable {
               answered.put(std::move(result));
               to.post([answered = std::move(answered)]() mutable { answered.go_on(); });
             });
}

}  // namespace idem
