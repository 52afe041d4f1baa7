#include "core/record/scope_key_line.hpp"

#include <gtest/gtest.h>

/// The journals of scopes' keys, and their lines (docs/encryption.md).
namespace idem {
namespace {

TEST(ScopeKeyLine, S14_a_scopes_journals_are_named_by_its_digest_and_are_in_the_order_of_numbers) {
  const std::string prefix = scope_key_prefix("acme");
  // printf acme | sha256sum
  EXPECT_EQ(prefix, "scope-key/822b33ad87c148a0a20a5ba7cd5ebcaa68d36a18e7aad165554903f52ca82757/");
  const std::string ninth = scope_key_journal(prefix, 9);
  const std::string tenth = scope_key_journal(prefix, 10);
  EXPECT_EQ(ninth, prefix + "0000000009");
  EXPECT_LT(ninth, tenth);
  EXPECT_EQ(prefix_of_scope_key(tenth), prefix);
  EXPECT_EQ(number_of_scope_key(tenth), 10U);
}

TEST(ScopeKeyLine, S14_other_names_are_no_such_journals) {
  const std::string prefix = scope_key_prefix("acme");
  for (const std::string& name :
       {std::string("audit"), std::string("scope-key/"), prefix, prefix + "1",
        prefix + "00000000x1", prefix + "00000000001", "x" + prefix + "0000000001"}) {
    EXPECT_FALSE(number_of_scope_key(name)) << name;
  }
  EXPECT_EQ(prefix_of_scope_key("job/1"), "");
}

TEST(ScopeKeyLine, S14_a_line_has_the_key_and_the_names_of_those_before_it) {
  ScopeKeyLine line{random_cipher_key(), {KeyName{1, 2}, KeyName{3}}};
  const std::string text = line.text();
  EXPECT_EQ(text.size(), 1U + 32 + 16);
  const auto read = ScopeKeyLine::parse(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->key.bytes, line.key.bytes);
  EXPECT_EQ(read->former, line.former);
  const auto first = ScopeKeyLine::parse(text.substr(0, 33));
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->former.empty());
}

TEST(ScopeKeyLine, S14_a_line_that_is_cut_or_of_another_version_is_none) {
  const std::string text = ScopeKeyLine{random_cipher_key(), {KeyName{}}}.text();
  for (std::size_t size = 0; size < text.size(); ++size) {
    if (size == 33) continue;  // That one is whole: the scope's first.
    EXPECT_FALSE(ScopeKeyLine::parse(text.substr(0, size))) << size;
  }
  EXPECT_FALSE(ScopeKeyLine::parse(std::string(1, 2) + text.substr(1)));
}

}  // namespace
}  // namespace idem
