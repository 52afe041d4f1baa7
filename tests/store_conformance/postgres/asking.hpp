#pragma once

#include "store/postgres/postgres_store.hpp"
#include "store_conformance/asking.hpp"
#include "support/cutting_proxy.hpp"

#include <fmt/format.h>

/// Stores in PostgreSQL by the servers' own clocks, for tests that need more than conformance.
namespace idem::test {

inline std::unique_ptr<Store> open_by_uri(const std::string& uri) {
  auto store = open_postgres(uri, test_settings(), {});
  if (store) return std::move(*store);
  ADD_FAILURE() << store.error().detail;
  std::abort();
}

/// The socket of the server that this URI names, as the proxy's target.
inline std::string socket_of(const std::string& uri) {
  const auto from = uri.find("host=") + 5;
  return uri.substr(from, uri.find('&', from) - from) + "/.s.PGSQL.5432";
}

/// The URI of the same database behind the proxy.
inline std::string through(const CuttingProxy& proxy, const std::string& uri) {
  const auto slash = uri.find("///") + 3;
  return fmt::format("postgres://postgres@127.0.0.1:{}/{}?sslmode=disable", proxy.port(),
                     uri.substr(slash, uri.find('?') - slash));
}

}  // namespace idem::test
