#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "support/admin.hpp"

namespace idem::test {
namespace {

using AdminKeys = Operated;

TEST_F(AdminKeys, are_listed_with_everything_that_is_promised) {
  ASSERT_EQ(ask(charge("k")).status, 201);
  const Json page = read("/v1/keys");
  ASSERT_EQ(page["keys"].items.size(), 1U);
  EXPECT_TRUE(page.has("next"));
  EXPECT_EQ(page["next"].kind, Json::Kind::null);
  const Json& record = page["keys"].items[0];
  EXPECT_EQ(record["ref"].string.size(), 32U);
  EXPECT_EQ(record["scope"].string, "acme");
  EXPECT_EQ(record["operation"].string, "POST /charges");
  EXPECT_EQ(record["state"].string, "completed");
  EXPECT_GT(record["fence"].integer, 0);
  EXPECT_EQ(record["response_status"].integer, 201);
  for (const auto* time : {"created_at", "expires_at"}) {
    EXPECT_TRUE(record[time].string.ends_with("Z")) << time;
    EXPECT_EQ(record[time].string.size(), 24U) << record[time].string;
  }
  ask(charge("lost", "drop-after"));
  const Json counts = read("/v1/keys?state=unknown&limit=1")["counts"];
  EXPECT_EQ(counts["completed"].integer, 1) << "whatever is listed";
  EXPECT_EQ(counts["unknown"].integer, 1);
  EXPECT_EQ(counts["pending"].integer, 0);
}

TEST_F(AdminKeys, are_listed_with_values_of_their_answers_as_they_are_spelled) {
  ask(charge("k", "", R"({"amount":12345678901234567890.10,"currency":"EUR"})"));
  ask(charge("lost", "drop-after"));
  const Json done =
      read("/v1/keys?state=completed&value=/amount&value=/currency&value=/no")["keys"].items.at(0);
  const Json& values = done["values"];
  EXPECT_EQ(values["/amount"].string, "12345678901234567890.10");
  EXPECT_EQ(values["/currency"].string, "EUR");
  EXPECT_TRUE(values.has("/no"));
  EXPECT_EQ(values["/no"].kind, Json::Kind::null);
  const Json lost = read("/v1/keys?state=unknown&value=/amount")["keys"].items.at(0);
  EXPECT_TRUE(lost.has("values"));
  EXPECT_EQ(lost["values"].kind, Json::Kind::null);
  EXPECT_FALSE(read("/v1/keys")["keys"].items.at(0).has("values"));
  for (const auto* wrong : {"value=amount", "value=", "newer_than=soon",
                            "value=/1&value=/2&value=/3&value=/4&value=/5&value=/6&value=/7&"
                            "value=/8&value=/9"}) {
    EXPECT_EQ(get("/v1/keys?" + std::string(wrong)).status, 400) << wrong;
  }
}

TEST_F(AdminKeys, are_named_without_reading_a_record) {
  ask(charge("k"));
  const std::string ref = read("/v1/keys")["keys"].items.at(0)["ref"].string;
  const auto named =
      post("/v1/keys/refs", R"({"keys":[{"scope":"acme","operation":"POST /charges","key":"k"},)"
                            R"({"scope":"other","operation":"POST /charges","key":"k"}]})");
  ASSERT_EQ(named.status, 200) << named.raw;
  const Json page = parse_json(named.body).value_or(Json{});
  ASSERT_EQ(page["refs"].items.size(), 2U);
  const auto has_ref = [&](const Json& refs) {
    return std::ranges::any_of(refs.items, [&](const Json& one) { return one.string == ref; });
  };
  EXPECT_TRUE(has_ref(page["refs"].items[0]));
  EXPECT_FALSE(has_ref(page["refs"].items[1]));
}

TEST_F(AdminKeys, are_listed_from_a_moment_on) {
  ask(charge("k"));
  const std::string created = read("/v1/keys")["keys"].items.at(0)["created_at"].string;
  EXPECT_EQ(read("/v1/keys?newer_than=" + created)["keys"].items.size(), 1U);
  EXPECT_EQ(read("/v1/keys?newer_than=1h")["keys"].items.size(), 1U);
  EXPECT_EQ(read("/v1/keys?newer_than=2100-01-01T00:00:00Z")["keys"].items.size(), 0U);
}

TEST_F(AdminKeys, names_of_many_keys_are_given_without_a_look_at_the_records) {
  ask(charge("k"));
  const std::string ref = only("completed")["ref"].string;
  const auto named = post("/v1/keys/refs", R"({"keys":[
      {"scope":"acme","operation":"POST /charges","key":"k"},
      {"scope":"other","operation":"POST /charges","key":"k"}]})");
  ASSERT_EQ(named.status, 200) << named.raw;
  const Json refs = parse_json(named.body).value_or(Json{})["refs"];
  ASSERT_EQ(refs.items.size(), 2U);
  const auto holds = [&](const Json& one) {
    return std::ranges::count(one.items, ref, &Json::string) == 1;
  };
  EXPECT_TRUE(holds(refs.items[0]));
  EXPECT_FALSE(holds(refs.items[1]));
  EXPECT_FALSE(refs.items[1].items.empty()) << "it has a name, although there is no record";
  for (const auto* wrong : {"", "{}", R"({"keys":{}})", R"({"keys":[{}]})", R"({"keys":["k"]})",
                            R"({"keys":[{"scope":"a","operation":"b","key":""}]})"}) {
    EXPECT_EQ(post("/v1/keys/refs", wrong).status, 400) << wrong;
  }
  EXPECT_EQ(get("/v1/keys/refs").status, 405);
}

TEST_F(AdminKeys, are_shown_with_the_stored_answer_and_without_secrets) {
  const auto first = ask(charge("k", "header=ETag:\"v1\""));
  const Json record = read("/v1/keys/" + only("completed")["ref"].string);
  EXPECT_EQ(record["response"]["status"].integer, 201);
  EXPECT_EQ(decode_base64(record["response"]["body_b64"].string), first.body);
  bool has_etag = false;
  for (const auto& field : record["response"]["headers"].items) {
    ASSERT_EQ(field.items.size(), 2U);
    has_etag = has_etag || (field.items[0].string == "ETag" && field.items[1].string == "\"v1\"");
  }
  EXPECT_TRUE(has_etag);
  EXPECT_EQ(record["lease_policy"].string, "unknown");
  const std::string fingerprint = record["request_fingerprint"].string;
  EXPECT_TRUE(fingerprint.starts_with("v")) << fingerprint;
  EXPECT_EQ(fingerprint.size() - fingerprint.find(':'), 17U) << fingerprint;
  EXPECT_EQ(record["evidence"].items.size(), 0U);
  for (const auto* secret : {"token", "fingerprint", "key", "request"}) {
    EXPECT_FALSE(record.has(secret)) << secret;
  }
}

TEST_F(AdminKeys, are_found_by_state_scope_operation_and_age) {
  ask(charge("done"));
  ask(charge("lost", "drop-after"));
  auto other = with(without(charge("other"), "X-Tenant-Id"), "X-Tenant-Id", "globex");
  other.target = "/refunds";
  ask(other);
  const std::pair<const char*, std::size_t> cases[] = {
      {"", 3},
      {"?state=unknown", 1},
      {"?state=completed", 2},
      {"?state=pending", 0},
      {"?scope=globex", 1},
      {"?scope=nobody", 0},
      {"?operation=POST%20%2Frefunds", 1},
      {"?operation=POST+/refunds&scope=acme", 0},
      {"?older_than=24h", 0},
      {"?older_than=0s", 3},
      {"?older_than=1999-01-01T00:00:00Z", 0},
      {"?older_than=2999-01-01T00:00:00%2B01:00", 3}};
  for (const auto& [query, count] : cases) {
    EXPECT_EQ(read(std::string("/v1/keys") + query)["keys"].items.size(), count) << query;
  }
}

TEST_F(AdminKeys, V33_are_found_by_a_key_that_only_its_digest_is_stored_of) {
  ask(charge("order-17"));
  ask(charge("order-18"));
  const Json page = read("/v1/keys?scope=acme&operation=POST+/charges&key=order-17");
  ASSERT_EQ(page["keys"].items.size(), 1U);
  EXPECT_EQ(page["keys"].items[0]["state"].string, "completed");
  EXPECT_EQ(read("/v1/keys?scope=acme&operation=POST+/charges&key=order-19")["keys"].items.size(),
            0U);
  EXPECT_EQ(read("/v1/keys?scope=acme&operation=POST+/charges&key=order-17&state=unknown")["keys"]
                .items.size(),
            0U);
  const auto refused = get("/v1/keys?key=order-17");
  EXPECT_TRUE(is_problem(refused, 400, "invalid_request"));
  EXPECT_EQ(refused.raw.find("order-17"), std::string::npos);
}

TEST_F(AdminKeys, pages_show_every_record_once_also_while_others_come) {
  constexpr int count = 25;
  for (int i = 0; i < count; ++i) ask(charge(fmt::format("k{}", i)));
  std::set<std::string> before;
  const Json all = read("/v1/keys");
  for (const auto& record : all["keys"].items) before.insert(record["ref"].string);
  ASSERT_EQ(before.size(), std::size_t{count});
  std::multiset<std::string> seen;
  std::string cursor;
  int pages = 0;
  do {
    const Json page = read("/v1/keys?limit=4" + (cursor.empty() ? "" : "&cursor=" + cursor));
    EXPECT_LE(page["keys"].items.size(), 4U);
    for (const auto& record : page["keys"].items) seen.insert(record["ref"].string);
    cursor = page["next"].string;
    ask(charge(fmt::format("later-{}", pages++)));
  } while (!cursor.empty() && pages < 100);
  for (const auto& ref : before) EXPECT_EQ(seen.count(ref), 1U);
  for (const auto& ref : seen) EXPECT_EQ(seen.count(ref), 1U);
}

TEST_F(AdminKeys, a_ref_that_is_none_is_refused_and_an_unknown_one_is_not_found) {
  EXPECT_TRUE(is_problem(get("/v1/keys/" + std::string(32, '0')), 404, "not_found"));
  for (const auto* ref : {"17", "ABCDEFABCDEFABCDEFABCDEFABCDEFAB", "%2e%2e"}) {
    EXPECT_TRUE(is_problem(get(std::string("/v1/keys/") + ref), 400, "invalid_request")) << ref;
  }
}

TEST_F(AdminKeys, refuse_parameters_that_they_do_not_know_or_cannot_read) {
  for (const auto* query :
       {"state=broken", "stat=unknown", "contested=yes", "limit=0", "limit=1001", "limit=ten",
        "older_than=soon", "older_than=2026-02-30T00:00:00Z", "cursor=17",
        "state=unknown&state=unknown", "scope=", "scope=%4", "key=a%zz&scope=a&operation=b", "=",
        "secret-parameter=1"}) {
    const auto answer = get(std::string("/v1/keys?") + query);
    EXPECT_TRUE(is_problem(answer, 400, "invalid_request")) << query;
    EXPECT_EQ(answer.raw.find("secret-parameter"), std::string::npos);
  }
  EXPECT_NE(get("/v1/keys?limit=0").body.find("limit: "), std::string::npos) << "it says where";
}

TEST_F(AdminKeys, nothing_of_the_operator_is_served_to_clients) {
  ask(charge("k"));
  const auto ref = only("completed")["ref"].string;
  for (const auto& path : {std::string("/metrics"), std::string("/livez"), std::string("/v1/keys"),
                           "/v1/keys/" + ref}) {
    const auto answer = ask({.method = "GET", .target = path});
    EXPECT_FALSE(answer.get("Idempotency-Outcome"));
    EXPECT_EQ(answer.body.find(ref), std::string::npos) << path;
    EXPECT_EQ(answer.body.find("idem_reserve_total"), std::string::npos) << path;
    EXPECT_EQ(answer.body.find("alive"), std::string::npos) << path;
  }
}

TEST_F(AdminKeys, are_not_served_under_a_foreign_host) {
  for (const auto* host : {"evil.example", "127.evil.example", "127.0.0.1.evil.example", "127.0.0",
                           "localhost.evil.example", "[::2]", "0.0.0.0", "127.0.0.1.1"}) {
    for (const auto* path : {"/v1/keys", "/metrics", "/readyz"}) {
      const auto answer = send_once(gateway_->admin(),
                                    {.method = "GET", .target = path, .fields = {{"Host", host}}});
      EXPECT_EQ(answer.status, 400) << host;
    }
  }
  for (const auto* host : {"localhost", "LOCALHOST:1", "127.0.0.1", "127.1.2.3:99", "[::1]:99"}) {
    const auto answer = send_once(
        gateway_->admin(), {.method = "GET", .target = "/v1/keys", .fields = {{"Host", host}}});
    EXPECT_EQ(answer.status, 200) << host;
  }
}

TEST_F(AdminKeys, are_not_served_to_a_page_of_another_origin) {
  const auto by = [&](const char* path, const char* name, const char* value) {
    return send_once(
        gateway_->admin(),
        {.method = "GET",
         .target = path,
         .fields = {{"Host", gateway_->admin()}, {name, value}, {"Sec-Fetch-Mode", "no-cors"}}});
  };
  for (const auto* path : {"/v1/keys", "/metrics", "/livez", "/readyz", "/nothing"}) {
    for (const auto* site : {"cross-site", "same-site", "", "other"}) {
      EXPECT_TRUE(is_problem(by(path, "Sec-Fetch-Site", site), 403, "bad_request")) << path << site;
    }
    for (const auto* origin : {"null", "https://evil.example", "http://localhost:1"}) {
      EXPECT_TRUE(is_problem(by(path, "Origin", origin), 403, "bad_request")) << path << origin;
    }
  }
  for (const auto* site : {"none", "same-origin"}) {
    EXPECT_EQ(by("/v1/keys", "sec-fetch-site", site).status, 200) << site;
  }
}

class AdminHost : public Operated {
 protected:
  std::vector<std::string> flags() const override {
    return {"--admin-host", "idem.internal", "--admin-host", "idem-2.internal"};
  }
};

TEST_F(AdminHost, may_be_named) {
  for (const auto& [host, status] :
       {std::pair("idem.internal:9901", 200), std::pair("IDEM-2.internal", 200),
        std::pair("idem-3.internal", 400)}) {
    EXPECT_EQ(send_once(gateway_->admin(),
                        {.method = "GET", .target = "/v1/keys", .fields = {{"Host", host}}})
                  .status,
              status)
        << host;
  }
}

}  // namespace
}  // namespace idem::test
