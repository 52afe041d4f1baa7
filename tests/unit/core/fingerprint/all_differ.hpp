#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace idem {

/// Each digest is of another request; every two must differ.
inline void expect_all_differ(const std::vector<std::string>& digests) {
  EXPECT_EQ(std::set<std::string>(digests.begin(), digests.end()).size(), digests.size());
}

}  // namespace idem
