#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/external_data.hpp"

namespace idem::test {

/// Where scripts/need-node-clients put the clients that tests drive.
inline std::filesystem::path node_modules() {
  return std::filesystem::path(IDEM_SOURCE_DIR) / "build/clients/node_modules";
}

/// A program or script of tests/clients.
inline std::string client_program(const std::string& name) {
  return (std::filesystem::path(IDEM_SOURCE_DIR) / "tests/clients" / name).string();
}

/// True where the shell finds a program of this name.
inline bool is_installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;  // NOLINT
}

}  // namespace idem::test

/// Skips loudly where a client is missing that scripts/need-node-clients would install; fails under
/// IDEM_REQUIRE_LIVE=1.
#define IDEM_NEED_NODE_CLIENT(name)                                                           \
  if (!std::filesystem::exists(::idem::test::node_modules() / (name)) ||                      \
      !::idem::test::is_installed("node")) {                                                  \
    if (::idem::test::required("IDEM_REQUIRE_LIVE")) FAIL() << (name) << " is not installed"; \
    GTEST_SKIP() << (name) << " is not installed: scripts/need-node-clients";                 \
  }                                                                                           \
  static_assert(true)
