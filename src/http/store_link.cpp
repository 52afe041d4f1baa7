#include "http/store_link.hpp"

namespace idem::http {
namespace {

struct Initiation {
  Loop* loop;
  Store* store;

  template <class Handler>
  void operator()(Handler handler, StoreCall call) const {
    store->call(std::move(call),
                [to = loop, handler = std::move(handler)](StoreResult result) mutable {
                  to->post([handler = std::move(handler), result = std::move(result)]() mutable {
                    std::move(handler)(std::move(result));
                  });
                });
  }
};

}  // namespace

Task<StoreResult> ask_store(Loop& loop, Store& store, StoreCall& call) {
  return asio::async_initiate<const asio::use_awaitable_t<Executor>, void(StoreResult)>(
      Initiation{&loop, &store}, resume, std::move(call));
}

}  // namespace idem::http
