// Protocol §2 and §10: what names a record, and what tells two requests apart.
#include <idem/fingerprint.hpp>

#include "unit/core/fingerprint/all_differ.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace idem {
namespace {

Secret secret_counting_from(std::uint8_t first) {
  Secret secret;
  for (std::uint8_t& byte : secret) byte = first++;
  return secret;
}

const Secret secret_a = secret_counting_from(0);
const Secret secret_b = secret_counting_from(1);

FingerprintParts json_parts(std::string_view body) {
  return {.method = "POST",
          .target = "/v1/charges",
          .content_type = "application/json",
          .chosen_headers = {},
          .body = body};
}

std::string digest_of(const FingerprintParts& parts) {
  return to_hex(fingerprint(secret_a, parts).digest);
}

std::string json_digest(std::string_view body) { return digest_of(json_parts(body)); }

std::string raw_digest(std::string_view body) {
  FingerprintParts parts = json_parts(body);
  parts.content_type = "application/octet-stream";
  return digest_of(parts);
}

// Made by Python's hmac and hashlib from the framing that fingerprint.hpp and §10 describe. They
// may change only together with fingerprint_version: stored records hold them.
TEST(Fingerprint, S10_it_equals_an_independent_programs_result) {
  const std::string_view headers[] = {"X-Tenant", "T1"};
  const Fingerprint json =
      fingerprint(secret_a, {.method = "POST",
                             .target = "/v1/charges?dry=0",
                             .content_type = " Application/JSON ; charset=utf-8",
                             .chosen_headers = headers,
                             .body = R"({ "currency":"eur", "amount":1.0e3 })"});
  EXPECT_EQ(json.version, 1U);
  EXPECT_EQ(to_hex(json.digest),
            "0000000000000000019214f798235d53ab43625b908f0899124c7aab75ecb676");
  const Fingerprint empty = fingerprint(
      secret_a,
      {.method = "PUT", .target = "/", .content_type = "", .chosen_headers = {}, .body = ""});
  EXPECT_EQ(to_hex(empty.digest),
            "000000000000000003675927c826f9c2c6d6b96f08b9742907498760cc42dd7f");
  FingerprintParts loose = json_parts(R"({ "amount" : 333333333.33333329 })");
  loose.target = "/v1/charges?b=+1&a=%31";
  EXPECT_EQ(to_hex(fingerprint(secret_a, loose).digest),
            "000000000000000001f0b988c13e0ded73960f60c921f75b13b4fb5c14a15c07");
  EXPECT_EQ(to_hex(record_id(secret_a, "tenant", "charges", "k1").bytes),
            "293c482fe75267bf115e99f62a3a6624");
  EXPECT_EQ(credential_digest(secret_a, "Basic dXNlcjpwYXNz"),
            "c148c9a208a4a63170050b1f5a10df574092d0b622ee05330cffc6a6d508cb3d");
}

TEST(Fingerprint, T35_no_join_of_scope_operation_and_key_is_ambiguous) {
  const std::string nul(1, '\0');
  std::vector<std::string> ids;
  const auto add = [&](std::string_view scope, std::string_view operation, std::string_view key) {
    ids.push_back(to_hex(record_id(secret_a, scope, operation, key).bytes));
  };
  add("ab", "c", "d");
  add("a", "bc", "d");
  add("a", "b", "cd");
  add("abcd", "", "");
  add("", "abcd", "");
  add("", "", "abcd");
  add("", "", "");
  add("a:b", "c", "d");
  add("a", "b:c", "d");
  add("a", "b", "c:d");
  add("a" + nul + "b", "c", "d");
  add("a", "b" + nul + "c", "d");
  // The frame of an empty part, smuggled into the part before it.
  add("a", std::string(8, '\0'), "");
  add("a" + std::string(8, '\0'), "", "");
  add("a", "", std::string(8, '\0'));
  expect_all_differ(ids);
}

RC_GTEST_PROP(FingerprintProperty, T35_two_triples_have_one_id_only_when_they_are_equal, ()) {
  const auto part = rc::gen::resize(
      9, rc::gen::container<std::string>(rc::gen::elementOf(std::string("a:/\0\1\2", 6))));
  const auto a = *rc::gen::tuple(part, part, part);
  const auto b = *rc::gen::tuple(part, part, part);
  const auto id = [](const auto& triple) {
    return std::apply([](const auto&... parts) { return record_id(secret_a, parts...); }, triple);
  };
  RC_ASSERT((id(a) == id(b)) == (a == b));
}

TEST(Fingerprint, T35_chosen_headers_cannot_be_shifted_into_other_parts) {
  std::vector<std::string> digests;
  const auto add = [&](std::vector<std::string_view> headers, std::string_view body) {
    FingerprintParts parts = json_parts(body);
    parts.content_type = "text/plain";
    parts.chosen_headers = headers;
    digests.push_back(digest_of(parts));
  };
  add({}, "b");
  add({"x", "1"}, "b");
  add({"x", ""}, "1b");
  add({"x", "12"}, "b");
  add({"x1", "2"}, "b");
  add({"x", "1", "y", "2"}, "b");
  add({"x", "2", "y", "1"}, "b");
  add({"raw", "b"}, "");
  expect_all_differ(digests);
}

TEST(Fingerprint, S10_header_names_are_compared_without_case_and_values_with) {
  const auto with = [](std::string_view name, std::string_view value) {
    const std::string_view headers[] = {name, value};
    FingerprintParts parts = json_parts("{}");
    parts.chosen_headers = headers;
    return digest_of(parts);
  };
  EXPECT_EQ(with("X-Tenant", "a"), with("x-tenant", "a"));
  EXPECT_NE(with("X-Tenant", "a"), with("X-Tenant", "A"));
}

TEST(Fingerprint, T40_different_payloads_have_different_digests) {
  expect_all_differ({json_digest(""), json_digest("{}"), json_digest("[]"), json_digest("null"),
                     json_digest("0"), json_digest(R"({"a":1})"), json_digest(R"({"a":2})"),
                     json_digest(R"({"a":"1"})"), json_digest("not json"), raw_digest(""),
                     raw_digest("a"), raw_digest("b"), raw_digest(std::string(1, '\0')),
                     raw_digest(std::string(2, '\0'))});
  EXPECT_EQ(json_digest(R"({"a":1})"), json_digest(R"({"a":1})"));
}

TEST(Fingerprint, T41_the_whole_body_counts_and_not_a_prefix) {
  for (const std::size_t size : {64U, 4096U, 65'536U, 1'048'576U}) {
    const std::string common(size, 'x');
    expect_all_differ({raw_digest(common + "1"), raw_digest(common + "2"), raw_digest(common),
                       raw_digest("1" + common)});
    expect_all_differ(
        {json_digest("[\"" + common + "\",1]"), json_digest("[\"" + common + "\",2]")});
  }
}

TEST(Fingerprint, T42_the_query_counts_byte_for_byte) {
  std::vector<std::string> digests;
  for (const std::string_view target :
       {"/v1/charges", "/v1/charges?", "/v1/charges?dry_run=1", "/v1/charges?dry_run=0",
        "/v1/charges?a=1&b=2", "/v1/charges?b=2&a=1", "/v1/charges?q=%20", "/v1/charges?q=+",
        "/v1/charges/", "/v1/Charges", "/v1/%63harges"}) {
    FingerprintParts parts = json_parts("{}");
    parts.target = target;
    digests.push_back(digest_of(parts));
  }
  expect_all_differ(digests);
}

TEST(Fingerprint, S10_the_method_counts) {
  FingerprintParts post = json_parts("{}");
  FingerprintParts patch = post;
  patch.method = "PATCH";
  FingerprintParts shifted = post;
  shifted.method = "POST/";
  shifted.target = "v1/charges";
  expect_all_differ({digest_of(post), digest_of(patch), digest_of(shifted)});
}

TEST(Fingerprint, T43_member_order_and_white_space_do_not_count) {
  EXPECT_EQ(json_digest(R"({"amount":5,"card":{"number":"4242","exp":{"m":1,"y":30}}})"),
            json_digest("{\"card\" : {\"exp\":{\"y\":30,\"m\":1},\n\"number\":\"\\u0034242\"},"
                        "\"amount\":5.0}"));
  EXPECT_NE(json_digest("[1,2]"), json_digest("[2,1]"));
}

TEST(Fingerprint, T44_number_text_does_not_count_and_number_value_does) {
  EXPECT_EQ(json_digest(R"({"amount":0.001})"), json_digest(R"({"amount":0.0010})"));
  EXPECT_EQ(json_digest(R"({"amount":0.001})"), json_digest(R"({"amount":1e-3})"));
  EXPECT_EQ(json_digest("[-0]"), json_digest("[0]"));
  expect_all_differ({json_digest("[9007199254740992]"), json_digest("[9007199254740993]"),
                     json_digest("[18446744073709551615]"), json_digest("[18446744073709551616]"),
                     json_digest("[1e400]"), json_digest("[1e401]"), json_digest("[1e-400]"),
                     json_digest("[0]"), json_digest("[\"#1e400\"]")});
}

TEST(Fingerprint, T44_duplicate_names_make_the_bytes_count) {
  expect_all_differ({json_digest(R"({"a":1,"a":2})"), json_digest(R"({"a":2,"a":1})"),
                     json_digest(R"({"a":1})"), json_digest(R"({"a":2})"),
                     json_digest(R"({ "a":1,"a":2})")});
}

TEST(Fingerprint, S10_json_that_is_refused_goes_in_as_raw_bytes) {
  const std::string deep = std::string(65, '[') + std::string(65, ']');
  expect_all_differ({json_digest(deep), json_digest(deep + " "), json_digest("\"\xff\""),
                     json_digest("\"\xfe\""), json_digest(R"("\ud800")"),
                     json_digest(R"("\uD800")"), json_digest("[1e99999999999999999999]"),
                     json_digest("[1e99999999999999999998]"), json_digest("{"), json_digest("{ ")});
}

// The canonical form of one body is the bytes of another that is refused only because of where it
// stands: without the tag these two could be made to look alike.
TEST(Fingerprint, S10_raw_bytes_never_pass_for_a_canonical_form) {
  EXPECT_NE(json_digest("[1e400]"), json_digest("[#1e400]"));
  EXPECT_NE(json_digest("1e-400"), json_digest("#1e-400"));
}

TEST(Fingerprint, S10_the_media_type_counts_without_case_parameters_and_spaces) {
  const auto with = [](std::string_view type) {
    FingerprintParts parts = json_parts(R"({ "a" : 1 })");
    parts.content_type = type;
    return digest_of(parts);
  };
  for (const std::string_view same :
       {"application/json;charset=utf-8", "APPLICATION/Json", " \tapplication/json\t ",
        "application/json ; a=\"b;c\"", "application/json;"}) {
    EXPECT_EQ(with(same), with("application/json")) << same;
  }
  expect_all_differ({with("application/json"), with("text/json"), with("application/x+json"),
                     with("application/jsonx"), with(""), with("json"), with("+json")});
}

TEST(Fingerprint, S10_how_a_body_is_encoded_counts) {
  const auto encoded = [](std::vector<std::string_view> lines, std::string_view body = R"({"a":1})",
                          const FingerprintRule* rule = nullptr) {
    FingerprintParts parts = json_parts(body);
    parts.content_encoding = lines;
    parts.rule = rule;
    return RequestDigest(parts).under(secret_a);
  };
  const auto one = [&](std::vector<std::string_view> lines) {
    return to_hex(encoded(std::move(lines)).front().digest);
  };
  expect_all_differ({one({}), one({"gzip"}), one({"br"}), one({"gzip, br"}), one({"br, gzip"})});
  EXPECT_EQ(one({"identity"}), json_digest(R"({"a":1})"));
  EXPECT_EQ(one({" GZIP ,identity,, br"}), one({"gzip", "br"}));
  EXPECT_EQ(encoded({"gzip"}).size(), 1U);
  EXPECT_NE(encoded({"gzip"}, R"({"a":1})").front().digest,
            encoded({"gzip"}, R"({ "a":1})").front().digest)
      << "encoded bytes are no JSON";
  const FingerprintRule rule{.include = {}, .exclude = {"/a"}, .headers = {}};
  const auto ruled = encoded({"gzip"}, R"({"a":1})", &rule);
  ASSERT_EQ(ruled.size(), 2U);
  EXPECT_EQ(ruled.back().digest, encoded({"gzip"}).front().digest)
      << "a record is not lost when a rule is added";
}

TEST(Fingerprint, S10_json_is_known_by_application_json_and_the_json_suffix) {
  const auto order_counts = [](std::string_view type) {
    FingerprintParts a = json_parts(R"({"a":1,"b":2})");
    FingerprintParts b = json_parts(R"({"b":2,"a":1})");
    a.content_type = b.content_type = type;
    return digest_of(a) != digest_of(b);
  };
  for (const std::string_view json :
       {"application/json", "Application/JSON;v=1", "application/vnd.api+json",
        "application/merge-patch+JSON ; x=y"}) {
    EXPECT_FALSE(order_counts(json)) << json;
  }
  for (const std::string_view other :
       {"", "text/plain", "text/json", "application/jsonp", "application/json+xml",
        "application/xml;x=application/json", "application/octet-stream;+json"}) {
    EXPECT_TRUE(order_counts(other)) << other;
  }
}

TEST(Fingerprint, T36_another_secret_gives_other_digests_throughout) {
  EXPECT_NE(fingerprint(secret_a, json_parts("{}")).digest,
            fingerprint(secret_b, json_parts("{}")).digest);
  EXPECT_NE(record_id(secret_a, "s", "o", "k"), record_id(secret_b, "s", "o", "k"));
  EXPECT_NE(credential_digest(secret_a, "c"), credential_digest(secret_b, "c"));
}

TEST(Fingerprint, T47_secrets_used_in_turn_do_not_mix) {
  const Fingerprint a = fingerprint(secret_a, json_parts("{}"));
  const Fingerprint b = fingerprint(secret_b, json_parts("{}"));
  const RecordId id = record_id(secret_a, "s", "o", "k");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(same_fingerprint(fingerprint(secret_b, json_parts("{}")), b));
    EXPECT_TRUE(same_fingerprint(fingerprint(secret_a, json_parts("{}")), a));
    EXPECT_NE(record_id(secret_b, "s", "o", "k"), id);
    EXPECT_EQ(record_id(secret_a, "s", "o", "k"), id);
  }
  Fingerprint other_version = a;
  ++other_version.version;
  EXPECT_FALSE(same_fingerprint(a, other_version));
}

TEST(Fingerprint, S10_every_thread_computes_the_same) {
  const std::string expected = json_digest(R"({"b":[1,2.50],"a":"\u00e9"})");
  std::vector<std::string> seen(8);
  {
    std::vector<std::jthread> threads;
    threads.reserve(seen.size());
    for (std::string& result : seen) {
      threads.emplace_back([&result] {
        for (int i = 0; i < 200; ++i) {
          // The other secret in between, so that keeping keyed state would show.
          credential_digest(i % 2 == 0 ? secret_a : secret_b, "c");
          fingerprint(i % 2 == 0 ? secret_b : secret_a, json_parts("{}"));
          result = json_digest(R"({"a":"é","b":[1,2.5]})");
        }
      });
    }
  }
  for (const std::string& result : seen) EXPECT_EQ(result, expected);
}

TEST(Fingerprint, S09_a_credential_is_known_by_64_hex_digits_that_hide_it) {
  const std::string digest = credential_digest(secret_a, "Bearer sk_live_1");
  EXPECT_EQ(digest.size(), 64U);
  EXPECT_EQ(digest.find_first_not_of("0123456789abcdef"), std::string::npos);
  expect_all_differ({digest, credential_digest(secret_a, "Bearer sk_live_2"),
                     credential_digest(secret_a, "Bearer sk_live_1 "),
                     credential_digest(secret_a, "")});
}

TEST(Fingerprint, S04_tokens_are_never_the_same_twice) {
  std::set<std::string> tokens;
  for (int i = 0; i < 1000; ++i) tokens.insert(to_hex(random_token().bytes));
  EXPECT_EQ(tokens.size(), 1000U);
  random_bytes({});
  std::vector<std::uint8_t> bytes(4096);
  random_bytes(bytes);
  EXPECT_GT(std::set<std::uint8_t>(bytes.begin(), bytes.end()).size(), 200U);
}

TEST(RandomToken, a_child_never_draws_the_numbers_of_its_parent) {
  random_token();  // The parent has drawn ahead.
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const Token token = random_token();
    const bool written = ::write(ends[1], token.bytes.data(), token.bytes.size()) == 16;
    ::_exit(written ? 0 : 1);
  }
  Token of_child;
  ASSERT_EQ(::read(ends[0], of_child.bytes.data(), of_child.bytes.size()), 16);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(to_hex(random_token().bytes), to_hex(of_child.bytes));
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace idem
