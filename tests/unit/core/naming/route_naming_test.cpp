// Protocol §2: a table of routes that gives a stored operation another name.
#include "core/naming/route_naming.hpp"

#include <idem/limits.hpp>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace idem {
namespace {

using Table = std::vector<RouteName>;

RouteName named(std::string name, std::vector<std::string> methods, std::string pattern,
                std::vector<std::string> formerly = {}) {
  return {std::move(methods), std::move(pattern), std::move(name), std::move(formerly)};
}
RouteName unnamed(std::string pattern, std::vector<std::string> formerly = {}) {
  return {{}, std::move(pattern), {}, std::move(formerly)};
}

RouteNaming parsed_table(const Table& table) {
  auto naming = RouteNaming::parse(table);
  if (naming) return *naming;
  ADD_FAILURE() << naming.error();
  return *RouteNaming::parse({});
}

bool keeps(const Table& from, const Table& to, std::string_view operation) {
  return !RouteNaming::why_lost(parsed_table(from), parsed_table(to), operation);
}

std::string table_refusal(const Table& table) {
  const auto naming = RouteNaming::parse(table);
  return naming ? "" : naming.error();
}

const RouteName pay = named("pay", {"POST"}, "/v1/payments");

TEST(RouteNaming, S02_the_same_table_keeps_every_operation) {
  const Table table{pay, named("quote", {}, "/v1/quotes/{id}"), unnamed("/v1/{rest...}"),
                    named("rest", {}, "/{rest...}")};
  for (const std::string operation : {"pay", "quote", "rest", "POST /v1/x"}) {
    EXPECT_TRUE(keeps(table, table, operation)) << operation;
  }
}

TEST(RouteNaming, S02_another_name_needs_the_old_one_in_formerly) {
  EXPECT_FALSE(keeps({pay}, {named("charge", {"POST"}, "/v1/payments")}, "pay"));
  EXPECT_TRUE(keeps({pay}, {named("charge", {"POST"}, "/v1/payments", {"pay"})}, "pay"));
  EXPECT_FALSE(keeps({pay}, {named("charge", {"POST"}, "/v1/payments", {"Pay", "pays"})}, "pay"));
  EXPECT_TRUE(keeps({pay}, {named("charge", {"POST"}, "/v1/payments")}, "POST /v1/other"))
      << "another operation is not concerned";
}

TEST(RouteNaming, S02_a_removed_route_leaves_its_requests_to_another_one) {
  EXPECT_FALSE(keeps({pay}, {}, "pay"));
  EXPECT_FALSE(keeps({pay}, {named("rest", {}, "/{rest...}")}, "pay"));
  EXPECT_TRUE(keeps({pay}, {unnamed("/v1/{rest...}", {"pay"})}, "pay"));
  EXPECT_TRUE(keeps({pay}, {named("rest", {}, "/{rest...}", {"pay"})}, "pay"));
}

TEST(RouteNaming, S02_requests_that_were_their_own_operation_get_a_name) {
  EXPECT_FALSE(keeps({}, {pay}, "POST /v1/payments"));
  EXPECT_TRUE(keeps({}, {pay}, "PUT /v1/payments")) << "not its method";
  EXPECT_TRUE(keeps({}, {pay}, "POST /v1/payments/7")) << "not its path";
  EXPECT_TRUE(keeps({}, {named("pay", {"POST"}, "/v1/payments", {"POST /v1/payments"})},
                    "POST /v1/payments"));
  const Table capture{
      named("capture", {}, "/v1/payments/{id}/capture", {"POST /v1/payments/{x}/capture"})};
  EXPECT_TRUE(keeps({}, capture, "POST /v1/payments/17/capture"));
  EXPECT_FALSE(keeps({}, capture, "PUT /v1/payments/17/capture"));
  EXPECT_TRUE(keeps({}, {named("all", {}, "/{rest...}", {"POST /{rest...}"})}, "POST /a//b/"));
}

TEST(RouteNaming, S02_formerly_is_kept_for_as_long_as_its_records_are) {
  const Table now{named("pay", {"POST"}, "/v1/payments", {"charge", "POST /v1/payments"})};
  EXPECT_FALSE(keeps(now, {pay}, "charge"));
  EXPECT_FALSE(keeps(now, {pay}, "POST /v1/payments"));
  EXPECT_TRUE(keeps(now, {pay}, "pay"));
}

TEST(RouteNaming, S02_a_pattern_that_changes_must_keep_its_requests) {
  const Table one{named("quote", {"POST", "PUT"}, "/v1/quotes/{id}")};
  EXPECT_TRUE(keeps(one, {named("quote", {}, "/v1/quotes/{rest...}")}, "quote")) << "wider";
  EXPECT_FALSE(keeps(one, {named("quote", {"POST"}, "/v1/quotes/{id}")}, "quote")) << "PUT is lost";
  EXPECT_FALSE(keeps(one, {named("quote", {"POST", "PUT"}, "/v1/quotes/special")}, "quote"));
  EXPECT_TRUE(keeps(one,
                    {named("quote", {"PUT"}, "/v1/quotes/{id}"),
                     named("other", {}, "/v1/quotes/{id}", {"quote"})},
                    "quote"));
}

TEST(RouteNaming, S02_a_route_put_in_front_matches_requests_of_later_ones) {
  const Table table{named("quote", {}, "/v1/quotes/{id}")};
  const auto in_front = [&](RouteName first) {
    Table longer = table;
    longer.insert(longer.begin(), std::move(first));
    return keeps(table, longer, "quote");
  };
  EXPECT_FALSE(in_front(named("special", {"POST"}, "/v1/quotes/special")));
  EXPECT_TRUE(in_front(named("special", {"POST"}, "/v1/quotes/special", {"quote"})));
  EXPECT_FALSE(in_front(named("any", {}, "/{a}/{b}/{c}")));
  EXPECT_FALSE(in_front(unnamed("/v1/{rest...}")));
  EXPECT_TRUE(in_front(named("short", {}, "/v1/quotes")));
  EXPECT_TRUE(in_front(named("long", {}, "/v1/quotes/{id}/{rest...}")));
  EXPECT_TRUE(in_front(named("other", {}, "/v2/{rest...}")));
}

TEST(RouteNaming, S02_requests_of_an_earlier_route_were_never_the_later_ones) {
  const Table before{named("special", {"POST"}, "/v1/quotes/special"),
                     named("quote", {}, "/v1/quotes/{id}")};
  const Table renamed{named("vip", {"POST"}, "/v1/quotes/special", {"special"}),
                      named("quote", {}, "/v1/quotes/{id}")};
  EXPECT_TRUE(keeps(before, renamed, "quote"));
  EXPECT_TRUE(keeps(before, renamed, "special"));
  // Were it gone, its requests would go to the other one.
  EXPECT_FALSE(keeps(before, {before[1]}, "special"));
  EXPECT_TRUE(keeps(before, {before[1]}, "quote"));
}

TEST(RouteNaming, S02_a_name_that_the_recorded_table_does_not_know_must_stand_in_the_new_one) {
  EXPECT_FALSE(keeps({}, {}, "ghost"));
  EXPECT_TRUE(keeps({}, {named("ghost", {}, "/g")}, "ghost"));
}

TEST(RouteNaming, S02_the_refusal_names_the_operation_and_what_to_write) {
  const auto why = RouteNaming::why_lost(
      parsed_table({pay}), parsed_table({named("charge", {"POST"}, "/v1/payments")}), "pay");
  ASSERT_TRUE(why);
  EXPECT_EQ(*why,
            "the store holds records of the operation \"pay\", and retries of requests to "
            "/v1/payments would be looked up as \"charge\" and run again: write formerly: "
            "[\"pay\"] there, or keep the name");
}

TEST(RouteNaming, an_invalid_table_is_refused_with_a_sentence) {
  EXPECT_EQ(table_refusal({}), "");
  EXPECT_NE(table_refusal({unnamed("v1")}), "");
  EXPECT_NE(table_refusal({unnamed("/{rest...}", {""})}), "");
  EXPECT_NE(table_refusal({unnamed("/{rest...}", {"POST /a{b"})}).find("POST /a{b"),
            std::string::npos);
  EXPECT_NE(table_refusal({named("POST /v1", {}, "/v1")}).find("without a name"),
            std::string::npos);
  EXPECT_NE(table_refusal({named("a\nb", {}, "/v1")}), "");
  EXPECT_EQ(table_refusal({named("a b", {}, "/v1")}), "");
  EXPECT_NE(table_refusal({named(std::string(limits::operation_bytes_max + 1, 'a'), {}, "/")}), "");
  EXPECT_NE(table_refusal(Table(limits::routes_max + 1, pay)), "");
}

// ---- against requests one by one ----

std::string operation_of(const Table& table, std::string_view method, std::string_view path,
                         std::vector<std::string>& also) {
  also.clear();
  for (const RouteName& route : table) {
    const bool fits =
        route.methods.empty() || std::ranges::find(route.methods, method) != route.methods.end();
    if (!fits || !PathPattern::parse(route.pattern)->matches(path)) continue;
    also = FormerNames::parse(route.formerly)->operations(method, path);
    return route.name.empty() ? own_operation(method, path) : route.name;
  }
  return own_operation(method, path);
}

// With any tables: when no stored operation is reported as lost, no request loses one.
RC_GTEST_PROP(RouteNamingProperty, S02_what_is_accepted_loses_no_request, ()) {
  const auto segment = rc::gen::elementOf(std::vector<std::string>{"/a", "/b", "/{x}", "/"});
  const auto tail = rc::gen::elementOf(std::vector<std::string>{"", "/{r...}"});
  const auto a_pattern = [&] {
    std::string pattern;
    for (int i = *rc::gen::inRange(0, 3); i > 0; --i) pattern += *segment;
    pattern += *tail;
    return pattern.empty() ? std::string("/") : pattern;
  };
  const auto methods = rc::gen::elementOf(
      std::vector<std::vector<std::string>>{{}, {"POST"}, {"PUT"}, {"POST", "PUT"}});
  const auto a_table = [&] {
    Table table;
    for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
      RouteName route{*methods,
                      a_pattern(),
                      *rc::gen::elementOf(std::vector<std::string>{"n", "m", "", ""}),
                      {}};
      const auto entry = rc::gen::elementOf(std::vector<std::string>{
          "n", "m", "POST /{r...}", "PUT /{r...}", "POST /a/{x}", "POST /a"});
      for (int k = *rc::gen::inRange(0, 4); k > 0; --k) route.formerly.push_back(*entry);
      table.push_back(std::move(route));
    }
    return table;
  };
  const Table before = a_table();
  Table after = *rc::gen::arbitrary<bool>() ? a_table() : before;
  if (!after.empty() && *rc::gen::arbitrary<bool>()) after.pop_back();

  std::vector<std::string> also;
  for (const std::string method : {"POST", "PUT"}) {
    for (const std::string path : {"/", "/a", "/b", "/c", "/a/", "//", "/a/a", "/a/c", "/b/a",
                                   "/c/c", "/a/b/c", "/a//", "///", "/a/a/a/a"}) {
      std::vector<std::string> stored{operation_of(before, method, path, also)};
      stored.insert(stored.end(), also.begin(), also.end());
      for (const auto& operation : stored) {
        if (!keeps(before, after, operation)) continue;
        const std::string now = operation_of(after, method, path, also);
        RC_ASSERT(now == operation || std::ranges::find(also, operation) != also.end());
      }
    }
  }
  for (const std::string name : {"n", "m"})
    RC_ASSERT(keeps(before, before, name) ||
              !std::ranges::any_of(before, [&](const RouteName& r) { return r.name == name; }));
}

RC_GTEST_PROP(PathPatternProperty, what_two_patterns_have_in_common_is_what_both_match, ()) {
  const auto a_pattern = [] {
    const auto segment = rc::gen::elementOf(std::vector<std::string>{"/a", "/b", "/{x}", "/"});
    std::string text;
    for (int i = *rc::gen::inRange(0, 4); i > 0; --i) text += *segment;
    if (text.empty() || *rc::gen::inRange(0, 3) == 0) text += "/{r...}";
    return *PathPattern::parse(text);
  };
  const PathPattern a = a_pattern();
  const PathPattern b = a_pattern();
  const auto both = a.common(b);
  bool all_of_b = true;
  std::vector<std::string> paths{""};
  for (std::size_t i = 0; i < paths.size() && paths.size() < 400; ++i) {
    for (const auto* more : {"/", "/a", "/b", "/c"}) paths.push_back(paths[i] + more);
  }
  for (const auto& path : paths) {
    RC_ASSERT((both && both->matches(path)) == (a.matches(path) && b.matches(path)));
    all_of_b = all_of_b && (!b.matches(path) || a.matches(path));
  }
  RC_ASSERT(a.covers(b) == all_of_b);
}

}  // namespace
}  // namespace idem
