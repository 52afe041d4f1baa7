#pragma once

#include "store/mysql/mysql_store.hpp"
#include "store_conformance/asking.hpp"
#include "support/cutting_proxy.hpp"
#include "support/mysql.hpp"

#include <fmt/format.h>

/// Stores in MariaDB by the servers' own clocks, for tests that need more than conformance.
namespace idem::test {

inline std::unique_ptr<Store> open_by_url(const std::string& url) {
  auto store = open_mysql(url, test_settings(), {});
  if (store) return std::move(*store);
  ADD_FAILURE() << store.error().detail;
  std::abort();
}

/// HOST:PORT of the server that this URL names, as the proxy's target.
inline std::string address_in(const std::string& url) {
  const auto from = url.find('@') + 1;
  return url.substr(from, url.find('/', from) - from);
}

/// The URL of the same database behind the proxy.
inline std::string by_proxy(const CuttingProxy& proxy, const std::string& url) {
  return fmt::format("mysql://root@127.0.0.1:{}{}", proxy.port(),
                     url.substr(url.find('/', url.find('@'))));
}

/// The first reason why a store cannot be opened there; empty: it can.
inline std::string refusal(const std::string& url, const MysqlOptions& options = {}) {
  const auto store = open_mysql(url, test_settings(), options);
  return store ? std::string() : store.error().detail;
}

inline std::string literal(const RecordId& id) { return "x'" + to_hex(id.bytes) + "'"; }

}  // namespace idem::test
