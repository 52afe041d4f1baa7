#include "core/naming/identity_settling.hpp"

#include <idem/fingerprint.hpp>

#include <gtest/gtest.h>

namespace idem {
namespace {

/// What a start would decide, found out without one.
class IdentityLook : public testing::Test {
 protected:
  static Secret secret(char letter) {
    Secret made{};
    made.fill(static_cast<std::uint8_t>(letter));
    return made;
  }
  static IdentitySettings settings(const std::string& scope, std::vector<Secret> secrets = {}) {
    return {.key_scope = "operation", .scope_source = scope, .secrets = std::move(secrets)};
  }
  static std::optional<RecordedIdentity> made_by(const IdentitySettings& first) {
    std::optional<RecordedIdentity> recorded;
    EXPECT_TRUE(settle_identity(recorded, first, [] { return GenerationCensus{}; }));
    return recorded;
  }
  /// Empty: a start would go on.
  std::string look(const std::optional<RecordedIdentity>& there, const IdentitySettings& asked,
                   const GenerationCensus& census = {.empty = false, .generations = {1}}) {
    auto recorded = there;
    contradictions_ = 0;
    const WhichStore which{
        .make = false, .look = true, .contradicted = [this] { ++contradictions_; }};
    const auto settled = settle_identity(recorded, asked, [&] { return census; }, which);
    EXPECT_EQ(recorded, there) << "a look records nothing";
    return settled ? "" : settled.error();
  }

  int contradictions_ = 0;
};

TEST_F(IdentityLook, T47_settings_that_would_hide_records_are_named_as_in_the_file) {
  const auto there = made_by(settings("header:X-Tenant-Id"));
  EXPECT_EQ(look(there, settings("header:X-Tenant-Id")), "");
  EXPECT_TRUE(look(there, settings("jwt:sub")).starts_with("scope.from is 'header:X-Tenant-Id'"));
  EXPECT_EQ(contradictions_, 1);
  EXPECT_EQ(look(there, settings("jwt:sub"), {}), "") << "an empty store takes any";
  auto by_tenant = settings("header:X-Tenant-Id");
  by_tenant.key_scope = "tenant";
  EXPECT_TRUE(look(there, by_tenant).starts_with("key.scope is 'operation'"));
  EXPECT_TRUE(look(made_by(settings("")), settings("jwt:sub")).contains("of services"));
}

TEST_F(IdentityLook, T47_a_secret_rotates_from_its_first_day_to_its_last) {
  const GenerationCensus old_ones{.empty = false, .generations = {1}};
  const GenerationCensus new_ones{.empty = false, .generations = {2}};
  auto there = made_by(settings("jwt:sub", {secret('a')}));
  const auto both = settings("jwt:sub", {secret('b'), secret('a')});
  const auto newer = settings("jwt:sub", {secret('b')});
  EXPECT_EQ(look(there, both, old_ones), "");
  EXPECT_NE(look(there, newer, old_ones), "");
  EXPECT_EQ(contradictions_, 1);
  EXPECT_NE(look(there, settings("jwt:sub"), old_ones), "");
  ASSERT_TRUE(settle_identity(there, both, [&] { return old_ones; }));
  EXPECT_NE(look(there, newer, old_ones), "") << "old records are left";
  EXPECT_EQ(look(there, newer, new_ones), "") << "the old secret is needed no more";
  EXPECT_EQ(look(there, newer, present_generation(*there)), "");
  EXPECT_NE(look(there, settings("jwt:sub", {secret('a')}), present_generation(*there)), "");
}

// Its restart must be tried again until the gateways have rotated.
TEST_F(IdentityLook, T47_a_worker_has_the_settings_of_the_store_and_waits_for_a_rotation) {
  const auto there = made_by(settings("jwt:sub", {secret('a')}));
  const auto rotated = settings("", {secret('b'), secret('a')});
  EXPECT_EQ(look(there, settings("", {secret('a')})), "");
  EXPECT_NE(look(there, rotated), "");
  EXPECT_EQ(contradictions_, 0);
  auto recorded = there;
  bool is_contradicted = false;
  const WhichStore worker{.make = false, .contradicted = [&] { is_contradicted = true; }};
  const auto census = [] { return GenerationCensus{.empty = false, .generations = {1}}; };
  EXPECT_FALSE(settle_identity(recorded, rotated, census, worker));
  EXPECT_FALSE(is_contradicted);
  EXPECT_EQ(recorded, there);
}

}  // namespace
}  // namespace idem
