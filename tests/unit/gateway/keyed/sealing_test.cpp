#include "gateway/keyed/sealing.hpp"

#include <idem/fingerprint.hpp>

#include <gtest/gtest.h>

namespace idem::gateway {
namespace {

Secret secret(std::uint8_t number) {
  Secret made;
  made.fill(number);
  return made;
}

class Sealing : public testing::Test {
 protected:
  Sealing() {
    identity_.secret = secret(1);
    record_.scope = "acme";
    record_.operation = "pay";
    record_.id = record_id(identity_.secret, "acme", "pay", "k-1");
    record_.sealed_key = seal_key("k-1", "acme", identity_, settings_);
  }
  std::optional<std::string> opened() const { return open_key(record_, identity_, settings_); }

  Identity identity_{};
  GatewaySettings settings_;
  Record record_;
};

TEST_F(Sealing, a_key_is_readable_only_with_the_secret) {
  EXPECT_EQ(record_.sealed_key.find("k-1"), std::string::npos);
  EXPECT_NE(record_.sealed_key, seal_key("k-1", "acme", identity_, settings_));
  EXPECT_EQ(opened(), "k-1");
  identity_.older = {identity_.secret};
  identity_.secret = secret(2);
  EXPECT_EQ(opened(), "k-1") << "under a secret that is still live";
  identity_.older.clear();
  EXPECT_EQ(opened(), std::nullopt);
}

TEST_F(Sealing, secrets_of_stored_requests_seal_it_where_there_are_any) {
  settings_.async_secrets = {secret(7)};
  EXPECT_EQ(opened(), "k-1") << "what was sealed before";
  record_.sealed_key = seal_key("k-1", "acme", identity_, settings_);
  EXPECT_EQ(opened(), "k-1");
  settings_.async_secrets.clear();
  EXPECT_EQ(opened(), std::nullopt);
}

TEST_F(Sealing, a_key_of_another_record_is_none) {
  record_.sealed_key = seal_key("k-2", "acme", identity_, settings_);
  EXPECT_EQ(opened(), std::nullopt) << "whose id is not made of it";
  record_.sealed_key = seal_key("k-1", "other", identity_, settings_);
  EXPECT_EQ(opened(), std::nullopt);
  record_.sealed_key.clear();
  EXPECT_EQ(opened(), std::nullopt);
  record_.sealed_key = "nonsense";
  EXPECT_EQ(opened(), std::nullopt);
}

TEST_F(Sealing, a_key_of_a_whole_scope_names_no_operation) {
  record_.id = record_id(identity_.secret, "acme", "", "k-1");
  EXPECT_EQ(opened(), std::nullopt);
  settings_.key_scope = KeyScope::tenant;
  EXPECT_EQ(opened(), "k-1");
}

}  // namespace
}  // namespace idem::gateway
