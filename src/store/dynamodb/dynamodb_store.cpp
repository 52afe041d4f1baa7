#include "store/dynamodb/dynamodb_store.hpp"

#include "store/dynamodb/store_driver.hpp"
#include "store/on_loop/loop_store.hpp"

namespace idem {

std::expected<void, std::string> check_dynamodb_url(const std::string& url) {
  const auto parsed = dynamodb::parse_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  return {};
}

std::expected<std::unique_ptr<Store>, StoreError> open_dynamodb(const std::string& url,
                                                                const IdentitySettings& settings,
                                                                const DynamodbOptions& options) {
  auto parsed = dynamodb::parse_url(url);
  if (!parsed) {
    return std::unexpected(StoreError{StoreError::Code::refused, std::move(parsed.error())});
  }
  return open_loop_store<dynamodb::StoreDriver>(settings, std::move(*parsed), options);
}

}  // namespace idem
