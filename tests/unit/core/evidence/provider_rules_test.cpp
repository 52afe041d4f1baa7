#include "core/evidence/provider_rules.hpp"
#include "core/json/place.hpp"

#include <gtest/gtest.h>

namespace idem {
namespace {

ResponseMatcher rule(std::string_view text) {
  auto parsed = ResponseMatcher::parse(text);
  EXPECT_TRUE(parsed) << parsed.error();
  return parsed.value_or(ResponseMatcher{});
}

TEST(JsonPlace, finds_the_bytes_as_they_stand) {
  constexpr std::string_view text =
      R"( { "a" : [ 1.10 , {"b/c" : "x\"y" , "~" : [ ] } ] , "" : {"n":-1e400} ,"z":true } )";
  EXPECT_EQ(json_at(text, "/a/0"), "1.10");
  EXPECT_EQ(json_at(text, "/a/1/b~1c"), R"("x\"y")");
  EXPECT_EQ(json_plain(*json_at(text, "/a/1/b~1c")), R"(x"y)");
  EXPECT_EQ(json_at(text, "/a/1/~0"), "[ ]");
  EXPECT_EQ(json_at(text, "//n"), "-1e400");
  EXPECT_EQ(json_at(text, "/z"), "true");
  EXPECT_EQ(json_at("42", ""), "42");
  EXPECT_EQ(json_at(text, "/a"), R"([ 1.10 , {"b/c" : "x\"y" , "~" : [ ] } ])");
  for (const auto* nothing :
       {"/a/2", "/a/00", "/a/-", "/b", "/z/0", "/a/0/0", "a", "/~2", "/a/1/~0/0"}) {
    EXPECT_FALSE(json_at(text, nothing)) << nothing;
  }
}

TEST(ProviderRules, match_by_status_and_value) {
  const std::string_view body =
      R"({"status":"captured","amount":5,"data":[{"id":"x"}],"none":null})";
  EXPECT_TRUE(rule("200").matches(200, body, true));
  EXPECT_FALSE(rule("200").matches(201, body, true));
  EXPECT_TRUE(rule("2xx").matches(299, body, true));
  EXPECT_FALSE(rule("2xx").matches(300, body, true));
  EXPECT_TRUE(rule("200 /status=captured").matches(200, body, true));
  EXPECT_FALSE(rule("200 /status=captured").matches(404, body, true));
  EXPECT_TRUE(rule("/amount=5").matches(418, body, true));
  EXPECT_FALSE(rule("/amount=5.0").matches(418, body, true));
  EXPECT_TRUE(rule("/none").matches(200, body, true)) << "null is a value";
  EXPECT_TRUE(rule("200 /data/0").matches(200, body, true));
  EXPECT_TRUE(rule("200 !/data/1").matches(200, body, true));
  EXPECT_FALSE(rule("200 !/data/0").matches(200, body, true));
  EXPECT_FALSE(rule("200 !/data/0").matches(200, "<html>", false))
      << "what is no JSON says nothing about what is in it";
}

TEST(ProviderRules, an_invalid_rule_is_refused_with_a_sentence) {
  for (const auto* text : {"", "20", "2000", "6xx", "20x", "200 ", "200 status=x", "captured",
                           "!/a=b", "200 /a~2=x", "200  /a", "200 !"}) {
    const auto parsed = ResponseMatcher::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().find('"' + std::string(text) + '"'), std::string::npos);
  }
}

TEST(ProviderRules, S19_an_unclear_answer_proves_nothing_yet) {
  const ResponseMatchers rules{.found = {rule("200 /charges/0")},
                               .failed = {rule("200 /declined=true")},
                               .not_there = {rule("404"), rule("200 !/charges/0")}};
  EXPECT_EQ(judge(rules, 200, R"({"charges":[1]})"), Finding::found);
  EXPECT_EQ(judge(rules, 404, ""), Finding::not_there);
  EXPECT_EQ(judge(rules, 200, R"({"charges":[]})"), Finding::not_there);
  for (const auto* body : {R"({"error":"try later"})", R"({"charges":null})", R"({"charges":"[]"})",
                           "{}", R"("maintenance")"}) {
    EXPECT_EQ(judge(rules, 200, body), Finding::later) << body << ": no list is no empty list";
  }
  EXPECT_EQ(judge({.not_there = {rule("200 !/id")}}, 200, "{}"), Finding::not_there);
  EXPECT_EQ(judge(rules, 503, R"({"charges":[]})"), Finding::later);
  EXPECT_EQ(judge(rules, 200, R"({"charges":[1],"declined":true})"), Finding::later)
      << "two answers at once are none";
  EXPECT_EQ(judge(rules, 200, R"({"charges":[],"charges":[1]})"), Finding::later)
      << "a name that stands there twice";
  EXPECT_EQ(judge(rules, 200, "{\"charges\":["), Finding::later);
  EXPECT_EQ(judge({}, 200, "{}"), Finding::later);
}

TEST(ProviderRules, rebuild_the_answer_from_theirs) {
  const RebuildRule whole;
  const auto first = rebuild(whole, Finding::found, "plain");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->status, 200);
  EXPECT_EQ(first->body, "plain");
  const RebuildRule part{.found_status = 201,
                         .failed_status = 402,
                         .content_type = "application/json",
                         .body = "/charges/0",
                         .headers = {{"Location", "/v1/{/charges/0/id}/x"}}};
  const std::string_view payload = R"({"charges":[{"id":"ch_1","amount":1.10}]})";
  const auto made = rebuild(part, Finding::found, payload);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->status, 201);
  EXPECT_EQ(made->body, R"({"id":"ch_1","amount":1.10})");
  const std::vector<Field> fields{{"Content-Type", "application/json"}, {"Location", "/v1/ch_1/x"}};
  EXPECT_EQ(made->headers, fields);
  EXPECT_EQ(rebuild(part, Finding::failed, payload)->status, 402);
  EXPECT_FALSE(rebuild(part, Finding::found, R"({"charges":[]})"));
  EXPECT_FALSE(rebuild(part, Finding::found, R"({"charges":[{"amount":1}]})"));
  EXPECT_FALSE(rebuild(part, Finding::found, R"({"charges":[{"id":"a\r\nSet-Cookie: x"}]})"))
      << "their value must not become a field of its own";
}

TEST(ProviderRules, templates_are_replaced_or_refused) {
  const auto value = [](std::string_view name) -> std::optional<std::string> {
    return name == "a" ? std::optional<std::string>("1") : std::nullopt;
  };
  EXPECT_EQ(expand("x{a}y{a}", value), "x1y1");
  EXPECT_EQ(expand("", value), "");
  EXPECT_FALSE(expand("{b}", value));
  EXPECT_FALSE(expand("{a", value));
  EXPECT_EQ(placeholders("/{operation}/{reference}"),
            (std::vector<std::string>{"operation", "reference"}));
}

}  // namespace
}  // namespace idem
