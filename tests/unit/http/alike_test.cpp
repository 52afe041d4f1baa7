#include "http/alike.hpp"

#include <gtest/gtest.h>

namespace idem::test {
namespace {

TEST(Alike, T33_names_that_a_server_may_read_as_one) {
  using http::alike;
  EXPECT_TRUE(alike("X-Tenant-Id", "x-tenant-id"));
  EXPECT_TRUE(alike("X-Tenant-Id", "X_TENANT_ID"));
  EXPECT_TRUE(alike("X-Tenant-Id", "XTenantId"));
  EXPECT_TRUE(alike("X-Tenant-Id", "~X-Tenant-Id!"));
  EXPECT_FALSE(alike("X-Tenant-Id", "X-Tenant-Ids"));
  EXPECT_FALSE(alike("X-Tenant-Id", "X-Tenant-I"));
  EXPECT_FALSE(alike("X-Tenant-Id", "X-Tenant-1d"));
  EXPECT_FALSE(alike("X-Tenant-Id", "--"));
}

}  // namespace
}  // namespace idem::test
