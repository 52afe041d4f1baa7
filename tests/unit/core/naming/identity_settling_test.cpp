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
  std::string look(const std::optional<RecordedIdentity>& there, const IdentitySettings& asked) {
    auto recorded = there;
    contradictions_ = 0;
    const WhichStore which{
        .make = false, .look = true, .contradicted = [this] { ++contradictions_; }};
    const auto settled = settle_identity(
        recorded, asked,
        []() -> GenerationCensus {
          ADD_FAILURE() << "a look reads no records";
          return {};
        },
        which);
    EXPECT_EQ(recorded, there) << "a look records nothing";
    EXPECT_EQ(contradictions_, settled ? 0 : 1);
    return settled ? "" : settled.error();
  }

  int contradictions_ = 0;
};

TEST_F(IdentityLook, T47_settings_that_would_hide_records_are_named_as_in_the_file) {
  const auto there = made_by(settings("header:X-Tenant-Id"));
  EXPECT_EQ(look(there, settings("header:X-Tenant-Id")), "");
  EXPECT_TRUE(look(there, settings("jwt:sub")).starts_with("scope.from is 'header:X-Tenant-Id'"));
  auto by_tenant = settings("header:X-Tenant-Id");
  by_tenant.key_scope = "tenant";
  EXPECT_TRUE(look(there, by_tenant).starts_with("key.scope is 'operation'"));
}

TEST_F(IdentityLook, T47_a_secret_that_rotates_is_right_and_one_that_is_missing_is_not) {
  const auto there = made_by(settings("jwt:sub", {secret('a')}));
  EXPECT_EQ(look(there, settings("jwt:sub", {secret('b'), secret('a')})), "");
  EXPECT_NE(look(there, settings("jwt:sub", {secret('b')})), "");
  EXPECT_NE(look(there, settings("jwt:sub")), "");
}

TEST_F(IdentityLook, a_worker_has_the_settings_of_the_store) {
  EXPECT_EQ(look(made_by(settings("jwt:sub")), settings("")), "");
}

// A worker that is restarted before the gateways of a rotation must be tried again.
TEST_F(IdentityLook, T47_a_worker_that_waits_for_a_gateways_rotation_contradicts_nothing) {
  auto recorded = made_by(settings("jwt:sub", {secret('a')}));
  const auto before = recorded;
  bool is_contradicted = false;
  const WhichStore worker{.make = false, .contradicted = [&] { is_contradicted = true; }};
  const auto none = [] { return GenerationCensus{}; };
  EXPECT_FALSE(settle_identity(recorded, settings("", {secret('b'), secret('a')}), none, worker));
  EXPECT_FALSE(is_contradicted);
  EXPECT_EQ(recorded, before);
}

TEST_F(IdentityLook, a_store_that_no_gateway_has_chosen_for_contradicts_nothing) {
  EXPECT_EQ(look(made_by(settings("")), settings("jwt:sub")), "");
}

}  // namespace
}  // namespace idem
