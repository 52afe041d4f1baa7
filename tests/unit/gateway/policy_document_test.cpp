#include "gateway/policy_document.hpp"

#include "core/key/key_time.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/json.hpp"

/// Compares the document with the settings and with the functions that decide.
namespace idem::gateway {
namespace {

using namespace std::chrono_literals;
using test::Json;

Json document_of(const GatewaySettings& settings) {
  const auto answer = policy_document(settings);
  EXPECT_EQ(answer.status, 200);
  const auto parsed = test::parse_json(answer.body);
  EXPECT_TRUE(parsed) << answer.body;
  return parsed.value_or(Json{});
}

std::vector<std::string> texts(const Json& list) {
  std::vector<std::string> all;
  for (const auto& item : list.items) all.push_back(item.string);
  return all;
}

std::set<int> statuses(const Json& ranges) {
  std::set<int> all;
  for (const auto& range : ranges.items) {
    const auto dash = range.string.find('-');
    const int first = std::stoi(range.string);
    const int last = dash == std::string::npos ? first : std::stoi(range.string.substr(dash + 1));
    for (int status = first; status <= last; ++status) EXPECT_TRUE(all.insert(status).second);
  }
  return all;
}

std::string meaning(int status, bool retry_after, const AnswerPolicy& policy) {
  AnswerFacts facts;
  facts.status = status;
  facts.has_retry_after = retry_after;
  switch (disposition(facts, policy)) {
    case Disposition::store:
      return "stored";
    case Disposition::unknown:
      return "unknown";
    default:
      return "released";
  }
}

TEST(PolicyDocument, S22_a_shadow_route_offers_nothing) {
  GatewaySettings settings;
  Route route;
  route.name = "pay";
  route.path = *PathPattern::parse("/pay");
  route.enforce = Enforce::shadow;
  settings.routes = RouteTable({route}, Route{});
  const Json routes = document_of(settings)["routes"];
  const Json& shadow = routes.items.at(0);
  EXPECT_EQ(shadow["enforce"].string, "shadow");
  EXPECT_FALSE(shadow["key_required"].boolean);
  for (const auto* name : {"mode", "retention_seconds", "outcomes", "key_reused_status"}) {
    EXPECT_FALSE(shadow.has(name)) << name;
    EXPECT_TRUE(routes.items.at(1).has(name)) << name;
  }
}

TEST(PolicyDocument, S13_gives_the_routes_result_of_each_status) {
  for (const auto preset : {Preset::ietf, Preset::stripe, Preset::lenient}) {
    for (const bool rolled_back : {false, true}) {
      GatewaySettings settings;
      Route rest;
      rest.answers = {.preset = preset,
                      .statuses = {{402, StatusRule::release}, {500, StatusRule::unknown}},
                      .errors_rolled_back = rolled_back};
      settings.routes = RouteTable({}, rest);
      const auto document = document_of(settings);
      const Json& route = document["routes"].items.at(0);
      for (const bool retry_after : {false, true}) {
        const Json& outcomes = route[retry_after ? "outcomes_with_retry_after" : "outcomes"];
        std::size_t listed = 0;
        for (const char* outcome : {"stored", "released", "unknown"}) {
          const auto these = statuses(outcomes[outcome]);
          listed += these.size();
          for (const int status : these) {
            EXPECT_EQ(meaning(status, retry_after, rest.answers), outcome) << status;
          }
        }
        EXPECT_EQ(listed, 400U) << "each final status is in one list";
      }
    }
  }
}

TEST(PolicyDocument, S13_lists_every_problem_with_its_status) {
  const auto document = document_of({});
  std::size_t known = 0;
  for (const auto& type : document["problem_types"].items) {
    const auto* kind = find_kind(type["code"].string);
    ASSERT_NE(kind, nullptr) << type["code"].string;
    ++known;
    EXPECT_EQ(type["status"].integer, kind->status);
    EXPECT_EQ(type["type"].string, "/.idem/problems/" + type["code"].string);
    const auto answer = to_answer({.code = kind->code});
    const auto body = test::parse_json(answer.body).value_or(Json{});
    EXPECT_EQ(type["type"].string, body["type"].string);
    EXPECT_EQ(type["retry"].string, body["retry"].string);
    EXPECT_EQ(type.has("retry"), body.has("retry"));
  }
  EXPECT_EQ(known, all_kinds().size());
  EXPECT_EQ(find_kind("role_missing"), &all_kinds().back());
}

TEST(PolicyDocument, S08_states_the_rules_for_the_time_in_a_key) {
  GatewaySettings settings;
  auto document = document_of(settings);
  EXPECT_EQ(document["key_time"].string, "ignored");
  EXPECT_FALSE(document.has("key_time_skew_seconds"));
  EXPECT_FALSE(document.has("first_sent_header"));
  EXPECT_FALSE(document["routes"].items.at(0).has("new_key_age_max_seconds"));
  settings.key_time = KeyTimeRule::checked;
  document = document_of(settings);
  EXPECT_EQ(document["key_time"].string, "checked");
  EXPECT_EQ(document["key_time_skew_seconds"].integer, limits::key_time_skew / 1s);
  EXPECT_FALSE(document.has("first_sent_header"));
  EXPECT_EQ(document["routes"].items.at(0)["new_key_age_max_seconds"].integer,
            limits::retention_default / 1s);
  settings.key_time = KeyTimeRule::ignored;
  settings.honours_first_sent = true;
  document = document_of(settings);
  EXPECT_EQ(document["first_sent_header"].string, "Repeatability-First-Sent");
  EXPECT_TRUE(document["routes"].items.at(0).has("new_key_age_max_seconds"));
  settings.key_time = KeyTimeRule::required;
  EXPECT_EQ(document_of(settings)["key_time"].string, "required");
}

TEST(PolicyDocument, S13_describes_a_key_and_the_retention_of_its_answer) {
  GatewaySettings settings;
  settings.key_headers = {"A-Key", "B-Key"};
  settings.key = {.syntax = KeySyntax::bare, .bytes_min = 7, .reject_pii = true};
  settings.key_scope = KeyScope::tenant;
  Route rest;
  rest.mode = Mode::wait;
  rest.wait_max = 9s;
  rest.retention = 3h;
  rest.tombstone = 5h;
  rest.request_body_bytes_max = 11;
  rest.response_body_bytes_max = 13;
  settings.routes = RouteTable({}, rest);
  auto document = document_of(settings);
  EXPECT_EQ(texts(document["key_headers"]), settings.key_headers);
  EXPECT_EQ(document["key_syntax"].string, "bare");
  EXPECT_EQ(document["key_bytes_min"].integer, 7);
  EXPECT_EQ(document["key_bytes_max"].integer, 255);
  EXPECT_TRUE(document["key_reject_pii"].boolean);
  EXPECT_EQ(document["key_scope"].string, "tenant");
  const Json& route = document["routes"].items.at(0);
  EXPECT_EQ(route["mode"].string, "wait");
  EXPECT_EQ(route["wait_max_seconds"].integer, 9);
  EXPECT_EQ(route["retention_seconds"].integer, 3 * 3600);
  EXPECT_EQ(route["refused_after_retention_seconds"].integer, 5 * 3600);
  EXPECT_EQ(route["request_body_bytes_max"].integer, 11);
  EXPECT_EQ(route["replayed_body_bytes_max"].integer, 13);
  rest.store_body = false;
  settings.routes = RouteTable({}, rest);
  document = document_of(settings);
  EXPECT_EQ(document["routes"].items.at(0)["replayed_body_bytes_max"].integer, 0);
}

}  // namespace
}  // namespace idem::gateway
