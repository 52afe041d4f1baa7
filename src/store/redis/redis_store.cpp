#include "store/redis/redis_store.hpp"

#include "store/on_loop/loop_store.hpp"
#include "store/redis/store_driver.hpp"

namespace idem {

std::expected<void, std::string> check_redis_url(const std::string& url) {
  const auto parsed = redis::parse_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  return {};
}

std::expected<std::unique_ptr<Store>, StoreError> open_redis(const std::string& url,
                                                             const IdentitySettings& settings,
                                                             const RedisOptions& options) {
  auto parsed = redis::parse_url(url);
  if (!parsed) {
    return std::unexpected(StoreError{StoreError::Code::refused, std::move(parsed.error())});
  }
  return open_loop_store<redis::StoreDriver>(settings, std::move(*parsed), options);
}

}  // namespace idem
