#include "core/exchange/policy.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace idem::test {
namespace {

using enum Disposition;

Disposition of(int status, bool retry_after = false, bool while_sending = false,
               std::optional<DeclaredOutcome> declared = {}) {
  return disposition({status, retry_after, while_sending, declared}, {});
}

// protocol.md §12, column "ietf", row by row, over every status there can be.
TEST(Policy, S12_ietf_table) {
  for (int status = 200; status <= 599; ++status) {
    Disposition expected = status < 500 ? store : unknown;
    if (status == 401 || status == 403 || status == 429) expected = release_declared;
    if (status == 408) expected = unknown;
    if (status == 421 || status == 425) expected = release_proven;
    EXPECT_EQ(of(status), expected) << status;
  }
  EXPECT_EQ(of(409), store);
  EXPECT_EQ(of(409, true), unknown);
}

TEST(Policy, S11_a_408_proves_something_only_while_we_were_sending) {
  EXPECT_EQ(of(408, false, true), release_proven);
  EXPECT_EQ(of(408, false, false), unknown);
  EXPECT_EQ(of(500, false, true), unknown);
}

// Envoy, for one, says 503 for a connection that was reset after the request had been sent on.
TEST(Policy, T31_rolled_back_errors_prove_nothing_where_a_proxy_may_have_sent_them) {
  const auto under = [](const AnswerPolicy& policy, int status) {
    return disposition({status, false, false, {}}, policy);
  };
  AnswerPolicy policy{.errors_rolled_back = true};
  for (int status = 500; status <= 599; ++status) {
    const bool proxy = status == 502 || status == 503 || status == 504;
    EXPECT_EQ(under(policy, status), proxy ? unknown : release_proven) << status;
  }
  policy.statuses[503] = StatusRule::release;
  EXPECT_EQ(under(policy, 503), release_declared);
  EXPECT_EQ(under(policy, 502), unknown);
}

TEST(Policy, S12_the_upstreams_outcome_field_beats_the_table_but_not_a_proof) {
  EXPECT_EQ(of(500, false, false, DeclaredOutcome::store), store);
  EXPECT_EQ(of(500, false, false, DeclaredOutcome::not_executed), release_proven);
  EXPECT_EQ(of(201, false, false, DeclaredOutcome::unknown), unknown);
  EXPECT_FALSE(parse_declared_outcome("Store"));
  EXPECT_FALSE(parse_declared_outcome(""));
  EXPECT_EQ(parse_declared_outcome("not-executed"), DeclaredOutcome::not_executed);
}

TEST(Policy, S12_an_outcome_field_that_contradicts_a_proof_leaves_neither) {
  for (const auto& [status, while_sending] : {std::pair(421, false), {425, false}, {408, true}}) {
    EXPECT_EQ(of(status, false, while_sending, DeclaredOutcome::store), unknown) << status;
    EXPECT_EQ(of(status, false, while_sending, DeclaredOutcome::unknown), unknown) << status;
    EXPECT_EQ(of(status, false, while_sending, DeclaredOutcome::not_executed), release_proven);
    EXPECT_EQ(of(status, false, while_sending), release_proven) << status;
  }
}

// T05: a refusal by the business (no stock, card declined) is an answer like any other.
TEST(Policy, T05_domain_refusals_are_stored) {
  for (const int status : {400, 402, 404, 409, 410, 422}) EXPECT_EQ(of(status), store) << status;
}

TEST(Policy, T32_responses_that_are_never_stored) {
  for (const auto* name :
       {"Set-Cookie", "set-cookie", "SET-COOKIE2", "WWW-Authenticate", "Proxy-Status",
        "Proxy-Authenticate", "Authentication-Info", "Alt-Svc", "Clear-Site-Data", "Connection",
        "Transfer-Encoding", "Content-Length", "Idem-Fence", "Idempotent-Replayed"}) {
    EXPECT_FALSE(may_store(name)) << name;
  }
  for (const auto* name :
       {"Content-Type", "Location", "ETag", "Date", "Content-Encoding", "Vary"}) {
    EXPECT_TRUE(may_store(name)) << name;
  }
}

TEST(Policy, P33_a_withheld_field_may_be_allowed_and_no_other) {
  const std::vector<std::string> allowed{"set-cookie", "Connection", "Idem-Fence", "Proxy-Status"};
  EXPECT_TRUE(may_store("Set-Cookie", allowed));
  for (const auto* name : {"WWW-Authenticate", "Connection", "Idem-Fence", "Proxy-Status"}) {
    EXPECT_FALSE(may_store(name, allowed)) << name;
  }
  EXPECT_TRUE(may_store("ETag", allowed));
  EXPECT_TRUE(is_withheld("set-cookie"));
  EXPECT_FALSE(is_withheld("ETag"));
  EXPECT_FALSE(is_withheld("Connection"));
}

TEST(Policy, S14_what_connection_names_is_not_stored) {
  std::vector<Field> fields{{"X-Of-It", "1"},         {"connection", " close ,x-of-it,, "},
                            {"X-Kept", "2"},          {"Set-Cookie", "a=b"},
                            {"Connection", "x-also"}, {"X-Also", "3"},
                            {"X-Als", "4"},           {"ETag", "5"}};
  keep_storable(fields);
  EXPECT_EQ(fields, (std::vector<Field>{{"X-Kept", "2"}, {"X-Als", "4"}, {"ETag", "5"}}));
  fields = {{"Set-Cookie", "a=b"}, {"Connection", "set-cookie"}};
  keep_storable(fields, std::vector<std::string>{"Set-Cookie"});
  EXPECT_TRUE(fields.empty());
}

}  // namespace
}  // namespace idem::test
