#include "store/store_kind.hpp"

#include "core/record/store_clock.hpp"
#include "store/dynamodb/dynamodb_store.hpp"

namespace idem {
namespace {

std::expected<std::unique_ptr<Store>, StoreError> open(const std::string& url,
                                                       const IdentitySettings& identity,
                                                       const OpenOptions& options) {
  return open_dynamodb(url, identity,
                       {.clock = moved_server_clock(),
                        .warn = options.warn,
                        .which = options.which,
                        .opened = options.opened});
}

}  // namespace

extern "C" {
extern const StoreKind idem_kind_dynamodb;
const StoreKind idem_kind_dynamodb{&check_dynamodb_url, &open, nullptr, nullptr};
}

}  // namespace idem
