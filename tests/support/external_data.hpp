#pragma once

#include <filesystem>
#include <string>

namespace idem::test {

/// Folder of the outside test data: IDEM_EXTERNAL_DATA, else ../shared/external beside the project.
/// Empty when it is not there.
std::filesystem::path external_data();

std::string read_file(const std::filesystem::path& path);

/// True when a missing server or data set must fail instead of skip.
bool required(const char* variable);

}  // namespace idem::test

/// Skips loudly when the outside data is missing; fails under IDEM_REQUIRE_EXTERNAL=1.
#define IDEM_NEED_EXTERNAL(name)                                                              \
  const std::filesystem::path name = ::idem::test::external_data();                           \
  if (name.empty()) {                                                                         \
    if (::idem::test::required("IDEM_REQUIRE_EXTERNAL")) FAIL() << "outside data is missing"; \
    GTEST_SKIP() << "outside data is missing; set IDEM_EXTERNAL_DATA";                        \
  }                                                                                           \
  static_assert(true)
