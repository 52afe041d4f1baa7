#include "admin/explain.hpp"

#include "json/value.hpp"

#include <gtest/gtest.h>

namespace idem::admin {
namespace {

std::string complaint(std::string_view body) {
  const auto read = parse_question(body);
  return read ? "" : read.error().substr(0, read.error().find(':'));
}

TEST(ExplainQuestion, is_read_with_all_its_parts) {
  const auto read = parse_question(
      R"({"method":"POST","target":"/a?b","headers":[["A","1"],["a","2"]],"body_b64":"AAE=",)"
      R"("scope":"acme"})");
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->method, "POST");
  EXPECT_EQ(read->target, "/a?b");
  EXPECT_EQ(read->headers, (std::vector<Field>{{"A", "1"}, {"a", "2"}}));
  EXPECT_EQ(read->body, std::string("\0\1", 2));
  EXPECT_EQ(read->scope, "acme");
  const auto least = parse_question(R"({"method":"GET","target":"/"})");
  ASSERT_TRUE(least) << least.error();
  EXPECT_TRUE(least->headers.empty() && least->body.empty() && !least->scope);
}

TEST(ExplainQuestion, errors_name_the_place) {
  EXPECT_EQ(complaint("["), "byte 1");
  EXPECT_EQ(complaint("[]"), "body");
  EXPECT_EQ(complaint("{}"), "/method");
  EXPECT_EQ(complaint(R"({"method":1,"target":"/"})"), "/method");
  EXPECT_EQ(complaint(R"({"method":"GET"})"), "/target");
  EXPECT_EQ(complaint(R"({"method":"GET","target":"/","headers":{}})"), "/headers");
  EXPECT_EQ(complaint(R"({"method":"GET","target":"/","headers":[["A","b"],["A",1]]})"),
            "/headers/1");
  EXPECT_EQ(complaint(R"({"method":"GET","target":"/","body_b64":"AAE"})"), "/body_b64");
  EXPECT_EQ(complaint(R"({"method":"GET","target":"/","scope":7})"), "/scope");
  EXPECT_EQ(complaint(R"({"method":"GET","target":"/","key":"k"})"), "body");
}

TEST(ExplainPage, has_every_member_also_where_nothing_is_known) {
  const auto page = json::parse(explanation_page({}));
  ASSERT_TRUE(page);
  for (const auto* name :
       {"route", "scope", "operation", "key", "operation_ref", "record", "fingerprint"}) {
    const auto* member = page->find(name);
    ASSERT_NE(member, nullptr) << name;
    EXPECT_TRUE(std::holds_alternative<std::nullptr_t>(member->is)) << name;
  }
  for (const auto* name : {"enforce", "outcome", "why", "answer", "differences"}) {
    EXPECT_NE(page->find(name), nullptr) << name;
  }
}

TEST(ExplainPage, shows_the_record_without_its_answer) {
  Explanation said;
  said.record = Record{};
  said.record->response = StoredResponse{201, {{"A", "secret"}}, "secret", true};
  said.record->stored_request = "secret";
  said.record->sealed_key = "secret";
  said.fingerprint = Explanation::Fingerprint{false, {"body"}, {}, "json"};
  const std::string page = explanation_page(said);
  EXPECT_EQ(page.find("secret"), std::string::npos) << page;
  EXPECT_NE(page.find(R"("response_status":201)"), std::string::npos) << page;
  EXPECT_NE(page.find(R"("matches":false)"), std::string::npos) << page;
}

}  // namespace
}  // namespace idem::admin
