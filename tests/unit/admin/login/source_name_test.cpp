#include "admin/login/login.hpp"

#include <gtest/gtest.h>

#include <set>

namespace idem::admin {
namespace {

TEST(SourceName, is_an_operators_name_and_no_two_names_share_one) {
  EXPECT_EQ(source_name("ada@example.com"), "ada@example.com");
  std::set<std::string> all;
  const std::string names[] = {"M\xC3\xBCller",      "M\xC3\xB6ller",      "Ada L", "Ada_L",
                               std::string(65, 'x'), std::string(66, 'x'), "",      "a\nb"};
  for (const std::string& name : names) {
    EXPECT_TRUE(is_operator_name(source_name(name))) << name;
    all.insert(source_name(name));
  }
  EXPECT_EQ(all.size(), std::size(names));
}

}  // namespace
}  // namespace idem::admin
