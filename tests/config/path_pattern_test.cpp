#include <gtest/gtest.h>

#include <algorithm>

#include "gateway/route.hpp"

/// The paths that a pattern matches, and the patterns that match all paths of another.
namespace idem::test {
namespace {

using gateway::PathPattern;
using gateway::Route;
using gateway::RouteTable;

PathPattern pattern(std::string_view text) {
  auto parsed = PathPattern::parse(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed ? *parsed : PathPattern{};
}

bool matches(std::string_view text, std::string_view path) { return pattern(text).matches(path); }

Route route(std::string_view name, std::vector<std::string> methods, std::string_view path) {
  Route made;
  made.name = name;
  made.methods = std::move(methods);
  made.path = pattern(path);
  return made;
}

TEST(PathPattern, literals_are_compared_byte_by_byte) {
  EXPECT_TRUE(matches("/v1/payments", "/v1/payments"));
  EXPECT_TRUE(matches("/", "/"));
  for (const auto* other : {"/v1/payments/", "/v1/Payments", "/v1//payments", "/v1/payment", "/v1",
                            "/v1/%70ayments", "v1/payments", "", "*"}) {
    EXPECT_FALSE(matches("/v1/payments", other)) << other;
  }
  EXPECT_TRUE(matches("/v1/payments/", "/v1/payments/"));
}

TEST(PathPattern, a_hole_matches_one_segment_that_is_not_empty) {
  EXPECT_TRUE(matches("/v1/quotes/{id}", "/v1/quotes/7"));
  EXPECT_TRUE(matches("/{a}/{b}", "/x/y"));
  EXPECT_TRUE(matches("/{a}/b", "/%2F/b"));
  for (const auto* other : {"/v1/quotes/", "/v1/quotes", "/v1/quotes/7/8", "/v1/quotes/7/"}) {
    EXPECT_FALSE(matches("/v1/quotes/{id}", other)) << other;
  }
}

TEST(PathPattern, a_tail_matches_the_rest_of_the_path) {
  for (const auto* path : {"/", "/a", "/a/b/", "//"}) {
    EXPECT_TRUE(matches("/{rest...}", path)) << path;
  }
  EXPECT_TRUE(matches("/v1/{rest...}", "/v1/"));
  EXPECT_TRUE(matches("/v1/{rest...}", "/v1/a/b"));
  EXPECT_FALSE(matches("/v1/{rest...}", "/v1"));
  EXPECT_FALSE(matches("/v1/{rest...}", "/v10/a"));
  EXPECT_FALSE(matches("/{rest...}", "*"));
}

TEST(PathPattern, an_invalid_pattern_is_refused) {
  for (const auto* text : {"", "v1", "/a b", "/a?b", "/a#b", "/\x7F", "/\xC3\xBC", "/a{b}", "/{a}b",
                           "/{}", "/{", "/}", "/{a...}/b", "/a\n"}) {
    EXPECT_FALSE(PathPattern::parse(text).has_value()) << text;
  }
}

TEST(PathPattern, covers_exactly_the_patterns_it_matches_more_than) {
  // The patterns and paths are few enough to compare all with all: who covers another must match
  // whatever that one does, and on these paths also the other way round.
  const std::vector<const char*> texts{"/",
                                       "/a",
                                       "/b",
                                       "/{x}",
                                       "/a/",
                                       "/a/b",
                                       "/a/{x}",
                                       "/{x}/b",
                                       "/{x}/{y}",
                                       "/{rest...}",
                                       "/a/{rest...}",
                                       "/{x}/{rest...}",
                                       "/a/b/{rest...}",
                                       "//",
                                       "/a//b"};
  std::vector<std::string> paths;
  const std::vector<const char*> segments{"", "a", "b", "c"};
  for (const auto* one : segments) {
    paths.push_back(std::string("/") + one);
    for (const auto* two : segments) {
      paths.push_back(std::string("/") + one + "/" + two);
      for (const auto* three : segments) {
        paths.push_back(std::string("/") + one + "/" + two + "/" + three);
        for (const auto* four : segments) {
          paths.push_back(std::string("/") + one + "/" + two + "/" + three + "/" + four);
        }
      }
    }
  }
  int covering = 0;
  for (const auto* a : texts) {
    for (const auto* b : texts) {
      const auto wide = pattern(a);
      const auto narrow = pattern(b);
      const bool all = std::all_of(paths.begin(), paths.end(), [&](const auto& path) {
        return !narrow.matches(path) || wide.matches(path);
      });
      EXPECT_EQ(wide.covers(narrow), all) << a << " and " << b;
      covering += all ? 1 : 0;
    }
  }
  EXPECT_GT(covering, 30);
}

TEST(RouteTable, the_first_that_matches_wins_and_the_rest_matches_all_others) {
  const RouteTable table({route("narrow", {"POST"}, "/a/{x}"), route("wide", {}, "/a/{rest...}")},
                         Route{});
  EXPECT_EQ(table.find("POST", "/a/1").name, "narrow");
  EXPECT_EQ(table.find("PUT", "/a/1").name, "wide");
  EXPECT_EQ(table.find("post", "/a/1").name, "wide") << "the case of methods counts";
  EXPECT_EQ(table.find("POST", "/a/1/2").name, "wide");
  EXPECT_EQ(table.find("POST", "/b").operation("POST", "/b"), "POST /b");
  EXPECT_EQ(table.find("OPTIONS", "*").name, "") << "asterisk form matches no pattern";
}

TEST(RouteTable, a_route_covers_another_only_with_all_its_methods) {
  const Route all = route("", {}, "/a/{x}");
  const Route post = route("", {"POST"}, "/a/{y}");
  const Route both = route("", {"PUT", "POST"}, "/a/{z}");
  EXPECT_TRUE(all.covers(post));
  EXPECT_TRUE(both.covers(post));
  EXPECT_FALSE(post.covers(both));
  EXPECT_FALSE(post.covers(all));
  EXPECT_TRUE(all.covers(all));
}

}  // namespace
}  // namespace idem::test
