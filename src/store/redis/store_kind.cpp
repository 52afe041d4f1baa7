#include "store/store_kind.hpp"

#include "core/record/store_clock.hpp"
#include "store/redis/hybrid_store.hpp"
#include "store/redis/redis_store.hpp"

namespace idem {
namespace {

std::expected<std::unique_ptr<Store>, StoreError> open(const std::string& url,
                                                       const IdentitySettings& identity,
                                                       const OpenOptions& options) {
  return open_redis(url, identity,
                    {.clock = moved_server_clock(),
                     .warn = options.warn,
                     .which = options.which,
                     .opened = options.opened});
}

std::expected<std::unique_ptr<Store>, StoreError> open_before(std::unique_ptr<Store> truth,
                                                              const std::string& url,
                                                              const OpenOptions& options) {
  return open_hybrid(std::move(truth), url, {.clock = moved_server_clock(), .warn = options.warn});
}

}  // namespace

extern "C" {
extern const StoreKind idem_kind_redis;
const StoreKind idem_kind_redis{&check_redis_url, &open, &open_before, nullptr};
}

}  // namespace idem
