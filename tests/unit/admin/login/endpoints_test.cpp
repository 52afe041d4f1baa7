#include "admin/login/endpoints.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "support/admin_page.hpp"

namespace idem::admin {
namespace {

std::string row(std::string_view method, std::string_view path, std::string_view role) {
  return std::string(method) + ' ' + std::string(path) + ' ' + std::string(role);
}

TEST(Endpoints, are_the_operations_of_the_page_with_their_roles) {
  std::set<std::string> rows;
  for (const Endpoint& one : endpoints()) {
    if (one.method != "HEAD") rows.insert(row(one.method, one.path, name_of(one.least)));
  }
  std::set<std::string> on_page;
  for (const auto& one : test::admin_operations()) {
    on_page.insert(row(one.method, one.path, one.role));
    const auto found = find_endpoint(one.method, one.path);
    ASSERT_TRUE(found && found->endpoint != nullptr) << one.path;
    EXPECT_EQ(found->endpoint->is_probe, one.is_open) << one.path;
  }
  EXPECT_EQ(rows, on_page);
  EXPECT_GE(rows.size(), 19U);
}

TEST(Endpoints, each_is_found_by_its_own_path) {
  for (const Endpoint& one : endpoints()) {
    const auto found = find_endpoint(one.method, one.path);
    ASSERT_TRUE(found) << one.path;
    EXPECT_EQ(found->endpoint, &one) << one.method << ' ' << one.path;
    const auto other = find_endpoint("PATCH", one.path);
    ASSERT_TRUE(other);
    EXPECT_EQ(other->endpoint, nullptr);
    EXPECT_TRUE(other->methods.contains(one.method)) << other->methods;
  }
}

TEST(Endpoints, a_literal_segment_comes_before_a_braced_one) {
  const auto refs = find_endpoint("POST", "/v1/keys/refs");
  ASSERT_TRUE(refs && refs->endpoint != nullptr);
  EXPECT_EQ(refs->endpoint->path, "/v1/keys/refs");
  const auto read = find_endpoint("GET", "/v1/keys/refs");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->endpoint, nullptr) << "no record has the ref refs";
  EXPECT_EQ(read->methods, "POST");
}

TEST(Endpoints, nothing_else_is_found) {
  for (const char* path :
       {"", "/", "/v1", "/v1/", "/v1/keys/", "/v1/keys//resolve", "/v1/keys/a/resolve/",
        "/v1/keys/a/resolve/b", "/v1/keysx", "/v1/keys/a/Resolve", "//livez", "/livez/",
        "/v1/tokens/a", "/v1/tokens//revoke", "/v1/dlq/a/b", "/metricsx"}) {
    EXPECT_FALSE(find_endpoint("GET", path)) << path;
    EXPECT_FALSE(find_endpoint("POST", path)) << path;
  }
}

// A row that an operator alone may post to decides something, and the audit names the decision.
TEST(Endpoints, S19_each_decision_has_its_name_in_the_audit) {
  std::set<std::string_view> names;
  for (const Endpoint& one : endpoints()) {
    const bool decides = one.method != "GET" && one.method != "HEAD" && one.least == Role::operates;
    EXPECT_EQ(!one.decides.empty(), decides) << one.method << ' ' << one.path;
    if (!decides) continue;
    EXPECT_TRUE(names.insert(one.decides).second) << one.decides;
  }
  EXPECT_GE(names.size(), 7U);
}

TEST(Endpoints, only_probes_can_be_open) {
  for (const Endpoint& one : endpoints()) {
    const bool is_one = one.path == "/livez" || one.path == "/readyz" || one.path == "/metrics";
    EXPECT_EQ(one.is_probe, is_one) << one.path;
    const bool is_about_the_login = one.path.starts_with("/v1/session");
    EXPECT_FALSE(one.method == "POST" && one.least == Role::viewer && !is_about_the_login)
        << one.path;
    EXPECT_EQ(one.is_open, one.method == "POST" && one.path == "/v1/session") << one.path;
  }
}

}  // namespace
}  // namespace idem::admin
