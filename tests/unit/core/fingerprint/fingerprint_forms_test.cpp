// Protocol §10: forms by name, multiparts by part, JSON by a route's pointers, chosen headers.
#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>

#include "unit/core/fingerprint/all_differ.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace idem {
namespace {

Secret counting_secret() {
  Secret secret;
  for (std::uint8_t byte = 0; byte < secret.size(); ++byte) secret[byte] = byte;
  return secret;
}
const Secret secret = counting_secret();

constexpr std::string_view form_type = "application/x-www-form-urlencoded";

std::vector<Fingerprint> fingerprints(std::string_view type, std::string_view body,
                                      const FingerprintRule& rule = {},
                                      std::vector<std::string_view> headers = {}) {
  return RequestDigest({.method = "POST",
                        .target = "/f",
                        .content_type = type,
                        .chosen_headers = headers,
                        .body = body,
                        .rule = &rule})
      .under(secret);
}

std::string digest(std::string_view type, std::string_view body, const FingerprintRule& rule = {},
                   std::vector<std::string_view> headers = {}) {
  const auto first = fingerprints(type, body, rule, std::move(headers)).front();
  return std::to_string(first.version) + ':' + to_hex(first.digest);
}

std::string form(std::string_view body) { return digest(form_type, body); }
std::string json(std::string_view body, const FingerprintRule& rule) {
  return digest("application/json", body, rule);
}

std::string multipart(const std::vector<std::pair<std::string, std::string>>& parts,
                      const std::string& boundary) {
  std::string body;
  for (const auto& [headers, content] : parts) {
    body += "--" + boundary + "\r\n" + headers + (headers.empty() ? "" : "\r\n") + "\r\n" +
            content + "\r\n";
  }
  return body + "--" + boundary + "--\r\n";
}

std::string upload(std::string_view body, const std::string& boundary = "b") {
  return digest("multipart/form-data; boundary=" + boundary, body);
}

// Made by Python's hmac and hashlib from the framing that §10 and the headers of src/core describe.
// They may change only together with fingerprint_version: stored records hold them.
TEST(FingerprintForms, S10_they_equal_an_independent_programs_results) {
  const auto fields = fingerprints(form_type, "b=2&a=1&b=1");
  ASSERT_EQ(fields.size(), 1U);
  EXPECT_EQ(to_hex(fields[0].digest),
            "00000000000000000257f2cf52f05cdc56c237c7015eb20298c23b341cf7f6ed");

  const auto parts = fingerprints(
      "multipart/form-data; Charset=utf-8; boundary=b",
      multipart({{"Content-Disposition: form-data; name=\"a\"", "1"}, {"", "two"}}, "b"));
  EXPECT_EQ(to_hex(parts[0].digest),
            "0000000000000000000000000000000073f28a09a26ac751db4a14009752d59b");

  const auto chosen =
      fingerprints("application/json", R"({"note":"n","amount":1e3,"x":[]})",
                   {{"/note", "/amount"}, {"/note"}, {"X-Api-Version"}}, {"X-API-Version", "3"});
  ASSERT_EQ(chosen.size(), 2U) << "the second is of a record that is older than the rule";
  EXPECT_EQ(to_hex(chosen[0].digest),
            "6fba3d9e42e8c18001b4cb96dad70928b6e73c6db7e9039f1985ca40fba2a383");
  EXPECT_EQ(
      to_hex(chosen[1].digest),
      to_hex(fingerprints("application/json", R"({"note":"n","amount":1e3,"x":[]})")[0].digest));
}

// ---- form bodies ----

TEST(FingerprintForms, V08_the_order_of_form_fields_does_not_count_and_that_of_their_values_does) {
  EXPECT_EQ(form("a=1&b=2"), form("b=2&a=1"));
  EXPECT_EQ(form("a=1&b=2&a=3"), form("a=1&a=3&b=2"));
  EXPECT_NE(form("a=1&a=2"), form("a=2&a=1"));
  EXPECT_EQ(form("card[number]=4242&card[cvc]=1&amount=5"),
            form("amount=5&card[cvc]=1&card[number]=4242"));
  EXPECT_EQ(digest("Application/X-WWW-Form-URLEncoded; charset=utf-8", "b=2&a=1"), form("a=1&b=2"));
}

TEST(FingerprintForms, T41_every_byte_of_a_form_counts) {
  expect_all_differ({form(""), form("a"), form("a="), form("a=1"), form("a=1&"), form("A=1"),
                     form("a=%31"), form("a=1&b=2"), form("a=1%26b=2"), form("a=1&b=2&b=2"),
                     form("a=1=b"), form("=a"), form("&"), form("&&"), form("a=+"), form("a=%20")});
  const std::string tail(100'000, 'x');
  EXPECT_NE(form("a=" + tail + "1&b=1"), form("a=" + tail + "2&b=1"));
}

// Fields that some server might read as one name keep their order.
TEST(FingerprintForms, T41_fields_that_some_server_reads_as_one_keep_their_order) {
  for (const auto& [one, other] :
       std::vector<std::pair<std::string, std::string>>{{"a=1", "%61=2"},
                                                        {"a=1", "A=2"},
                                                        {"a.b=1", "a_b=2"},
                                                        {"a+b=1", "a%20b=2"},
                                                        {"a[]=1", "a[5]=2"},
                                                        {"a=1", "a[b]=2"},
                                                        {"a[b]=1", "a[b][c]=2"},
                                                        {"a[][x]=1", "a[][y]=2"},
                                                        {"a%5B%5D=1", "a[x]=2"}}) {
    EXPECT_NE(form(one + "&" + other), form(other + "&" + one)) << one << ' ' << other;
    EXPECT_EQ(form(one + "&" + other + "&z=1"), form("z=1&" + one + "&" + other)) << one;
  }
}

// Names that servers mend in ways of their own: nobody knows which are one, so the order counts.
TEST(FingerprintForms, T41_a_form_with_names_that_some_server_mends_counts_byte_for_byte) {
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
           {"+amount=100", "amount=1"},    // PHP: leading blanks go
           {"%20amount=100", "amount=1"},  //
           {"amount+=1", "amount=2"},      // a server that trims
           {"a[b=1", "a_b=2"},             // PHP: an unclosed bracket is an underscore
           {"a[=1", "a[b]=2"},             //
           {"[amount]=1", "amount=2"},     // Rack, qs
           {"amount]=1", "amount=2"},      // Rack
           {"a[b]]=1", "a[b]=2"},          //
           {"a[+b]=1", "a[b]=2"},          // PHP
           {"a[b+]=1", "a[b]=2"},          //
           {"%C3%89=1", "%C3%A9=2"},       // case beyond ASCII
           {"%E2%84%AA=1", "k=2"},         // the Kelvin sign
           {"a%C2%A0=1", "a=2"},           // a blank beyond ASCII
           {"a.b=1", "a[b]=2"},            // qs with dots, ASP.NET, Spring
           {"a[0].b=1", "a[0][b]=2"},      //
           {"a[0]=1", "a[00]=2"}}) {       // Spring
    EXPECT_EQ(form(one + "&" + other).front(), '1') << one << ' ' << other;
    EXPECT_NE(form(one + "&" + other), form(other + "&" + one)) << one << ' ' << other;
  }
  // None of that is in forms as they are.
  EXPECT_EQ(form("user[name]=n&user_name=m&items[0].id=1&items[0].n=2&a.b=1&x[y]=2&b+c=3"),
            form("b+c=3&x[y]=2&a.b=1&items[0].id=1&items[0].n=2&user_name=m&user[name]=n"));
  EXPECT_EQ(form("a[b]=%C3%89&c=1"), form("c=1&a[b]=%C3%89")) << "values are anything";
}

bool is_read(std::string_view body) {
  return body_kind(fingerprints(form_type, body).front()) == BodyKind::form;
}

TEST(FingerprintForms, S10_a_malformed_form_counts_byte_for_byte) {
  for (const std::string bad :
       {"a=%", "a=%4", "a=%zz", "a=\x80", "a=1;c=2", "a= ", "%00=1", "a\n=1"}) {
    EXPECT_FALSE(is_read(bad + "&b=1")) << bad;
    EXPECT_NE(form(bad + "&b=1"), form("b=1&" + bad)) << bad;
  }
  std::string many = "a";
  for (std::size_t i = 1; i < limits::form_fields_max; ++i) many += "&a";
  EXPECT_TRUE(is_read(many));
  EXPECT_FALSE(is_read(many + "&a"));
}

RC_GTEST_PROP(FingerprintFormsProperty, V08_two_forms_are_one_when_each_names_values_are, ()) {
  const auto field = rc::gen::map(
      rc::gen::tuple(rc::gen::elementOf(std::string("abc")), rc::gen::elementOf(std::string("12"))),
      [](const std::tuple<char, char>& f) {
        return std::string{std::get<0>(f), '=', std::get<1>(f)};
      });
  const auto fields = rc::gen::resize(6, rc::gen::container<std::vector<std::string>>(field));
  const auto join = [](const std::vector<std::string>& list) {
    std::string body;
    for (const auto& one : list) body += (body.empty() ? "" : "&") + one;
    return body;
  };
  const auto by_name = [](const std::vector<std::string>& list) {
    std::map<char, std::vector<std::string>> names;
    for (const auto& one : list) names[one[0]].push_back(one);
    return names;
  };
  const std::vector<std::string> a = *fields;
  std::vector<std::string> b = *fields;
  if (*rc::gen::arbitrary<bool>()) {
    b = a;  // Swapped here and there, so that both answers come up.
    for (std::size_t i = 1; i < b.size(); ++i) {
      if (*rc::gen::arbitrary<bool>()) std::swap(b[i - 1], b[i]);
    }
  }
  RC_ASSERT((form(join(a)) == form(join(b))) == (by_name(a) == by_name(b)));
}

// ---- multipart bodies ----

TEST(FingerprintForms, T45_the_boundary_does_not_count) {
  const std::vector<std::pair<std::string, std::string>> parts{
      {"Content-Disposition: form-data; name=\"amount\"", "5"},
      {"Content-Disposition: form-data; name=\"f\"; filename=\"a\"\r\nContent-Type: text/plain",
       "line\r\n\r\nline\r\n"},
      {"", ""}};
  EXPECT_EQ(upload(multipart(parts, "b"), "b"), upload(multipart(parts, "other"), "other"));
  EXPECT_EQ(upload(multipart(parts, "b"), "b"),
            digest("Multipart/Form-Data ;  BOUNDARY=\"x (1):y\"", multipart(parts, "x (1):y")));
}

// RFC 2046 §5.1.1: to be ignored, and some clients write them.
TEST(FingerprintForms, T45_a_preamble_and_an_epilogue_count_and_the_boundary_does_not) {
  const auto framed = [](const std::string& before, const std::string& after,
                         const std::string& boundary = "b") {
    return upload(before + multipart({{"", "1"}}, boundary) + after, boundary);
  };
  const std::pair<const char*, const char*> frames[] = {
      {"\r\n", ""},     {"This is MIME.\r\n", ""}, {"", "\r\n"},
      {"", "epilogue"}, {"\r\n", "epilogue\r\n"},  {"", "\n-- \n"}};
  std::vector<std::string> all{framed("", "")};
  for (const auto& [before, after] : frames) {
    EXPECT_EQ(framed(before, after), framed(before, after, "other")) << before << '|' << after;
    all.push_back(framed(before, after));
  }
  expect_all_differ(all);
}

TEST(FingerprintForms, T45_all_else_of_a_multipart_counts) {
  const std::string a = "Content-Disposition: form-data; name=\"a\"";
  const std::string b = "Content-Disposition: form-data; name=\"b\"";
  const std::string whole = multipart({{a, "1"}, {b, "2"}}, "b");
  const std::string type = "multipart/form-data; boundary=b";
  expect_all_differ(
      {upload(whole), upload(multipart({{b, "2"}, {a, "1"}}, "b")),
       upload(multipart({{a, "2"}, {b, "1"}}, "b")), upload(multipart({{a, "1"}}, "b")),
       upload(multipart({}, "b")), upload(multipart({{a, "1"}, {b, "2"}, {b, "2"}}, "b")),
       upload(multipart({{a, "1\r\n"}, {b, "2"}}, "b")),
       upload(multipart({{a + " ", "1"}, {b, "2"}}, "b")),
       upload(multipart({{"", a + "\r\n\r\n1"}, {b, "2"}}, "b")),
       upload(whole.substr(0, whole.size() - 2)), digest(type + "; charset=utf-8", whole),
       digest("multipart/mixed; boundary=b", whole)});
  const std::string tail(100'000, 'x');
  EXPECT_NE(upload(multipart({{a, tail + "1"}}, "b")), upload(multipart({{a, tail + "2"}}, "b")));
}

// Bodies that another reader might split otherwise, with another boundary or more leniently.
TEST(FingerprintForms, T45_a_malformed_multipart_counts_byte_for_byte) {
  const std::string whole = multipart({{"", "1"}}, "b");
  const std::string other = multipart({{"", "1"}}, "c");
  const auto same_but_boundary = [](const std::string& before, const std::string& after) {
    return digest("multipart/form-data; boundary=b",
                  before + multipart({{"", "1"}}, "b") + after) ==
           digest("multipart/form-data; boundary=c", before + multipart({{"", "1"}}, "c") + after);
  };
  EXPECT_TRUE(same_but_boundary("", ""));
  EXPECT_FALSE(same_but_boundary("preamble", "")) << "the delimiter begins no line";
  EXPECT_FALSE(same_but_boundary("preamble\n", ""));
  EXPECT_FALSE(same_but_boundary("x--b\r\n", ""));
  EXPECT_FALSE(same_but_boundary("--b\r\n", ""));
  EXPECT_FALSE(same_but_boundary("", "\r\n--b"));
  EXPECT_FALSE(same_but_boundary("", "--c--"));
  // One body, read with the one boundary or the other, is not one request.
  for (const auto& body : {"x\r\n" + whole + other, whole, other, whole.substr(0, 9)}) {
    EXPECT_NE(digest("multipart/form-data; boundary=b", body),
              digest("multipart/form-data; boundary=c", body));
  }
  // Not at the beginning of a line: what stands before it counts.
  EXPECT_NE(upload("--b\r\n\r\nab--b\r\n\r\n\r\n--b--"),
            upload("--b\r\n\r\ncd--b\r\n\r\n\r\n--b--"));
  // The same parts by our reading, while a lenient reader sees a delimiter in the content.
  const auto with_content = [](const std::string& content, const std::string& boundary) {
    return upload(multipart({{"", content}}, boundary), boundary);
  };
  for (const std::string content : {"x\n--b\n\n1", "--bc", "\r\n--bx\r\n", "--b", "\r\n--b \r\n"}) {
    EXPECT_NE(with_content(content, "b"), with_content(content, "other")) << content;
  }
  for (const std::string type :
       {"multipart/form-data",
        "multipart/form-data; boundary=", "multipart/form-data; boundary=\"b",
        "multipart/form-data; boundary=b; boundary=b", "multipart/form-data; boundary=\"b \"",
        "multipart/form-data; boundary=b;;=", "multipart/form-data; boundary = b"}) {
    EXPECT_NE(digest(type, whole), upload(whole)) << type;
    EXPECT_NE(digest(type, whole), digest("application/x", whole)) << type;
  }
}

TEST(FingerprintForms, S10_too_many_parts_count_byte_for_byte) {
  const std::vector<std::pair<std::string, std::string>> most(limits::multipart_parts_max);
  EXPECT_EQ(upload(multipart(most, "b")), upload(multipart(most, "c"), "c"));
  auto more = most;
  more.emplace_back();
  EXPECT_NE(upload(multipart(more, "b")), upload(multipart(more, "c"), "c"));
}

RC_GTEST_PROP(FingerprintFormsProperty, T45_two_multiparts_are_one_exactly_when_their_parts_are,
              ()) {
  const auto text = [](const std::string& alphabet) {
    return rc::gen::resize(8, rc::gen::container<std::string>(rc::gen::elementOf(alphabet)));
  };
  // No line's end in the headers, and neither boundary in anything.
  const auto part = rc::gen::pair(text("h:-"), text("-xy\r\n"));
  const auto parts = rc::gen::resize(
      4, rc::gen::container<std::vector<std::pair<std::string, std::string>>>(part));
  const auto a = *parts;
  const auto b = *rc::gen::arbitrary<bool>() ? a : *parts;
  RC_ASSERT((upload(multipart(a, "b"), "b") == upload(multipart(b, "c-c"), "c-c")) == (a == b));
}

RC_GTEST_PROP(FingerprintFormsProperty, T45_no_two_bodies_of_one_boundary_are_one, ()) {
  const auto body = rc::gen::map(
      rc::gen::resize(9, rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(
                             std::vector<std::string>{"--b", "\r\n", "--", "x", "\r\n\r\n"}))),
      [](const std::vector<std::string>& pieces) {
        std::string whole;
        for (const auto& piece : pieces) whole += piece;
        return whole;
      });
  const std::string a = "--b\r\n" + *body + "\r\n--b--";
  const std::string b = "--b\r\n" + *body + "\r\n--b--";
  RC_ASSERT((upload(a) == upload(b)) == (a == b));
}

// ---- what a route's rule chooses ----

TEST(FingerprintRules, S10_an_excluded_member_does_not_count) {
  const FingerprintRule rule{.exclude = {"/metadata/client_time", "/items/1", "/a~1b", "/m~0n"}};
  const std::string first = json(R"({"amount":1,"metadata":{"client_time":1,"k":2}})", rule);
  EXPECT_EQ(first, json(R"({"amount":1,"metadata":{"client_time":2,"k":2}})", rule));
  EXPECT_EQ(first, json(R"({"metadata":{"k":2},"amount":1.0})", rule));
  EXPECT_EQ(first, json(R"({"a/b":{},"m~n":[7],"metadata":{"k":2},"amount":1.0})", rule));
  EXPECT_EQ(json(R"({"items":[1,2,3]})", rule), json(R"({"items":[1,{"x":[]},3]})", rule));
  expect_all_differ({first, json(R"({"amount":2,"metadata":{"k":2}})", rule),
                     json(R"({"amount":1,"metadata":{}})", rule),
                     json(R"({"amount":1,"metadata":{"k":2},"client_time":1})", rule),
                     json(R"({"amount":1,"metadata":[{"client_time":1}]})", rule),
                     json(R"({"items":[1,2,3]})", rule), json(R"({"items":[2,2,3]})", rule),
                     json(R"({"items":[1,2,4]})", rule), json(R"({"items":{"0":1,"1":2}})", rule)});
}

TEST(FingerprintRules, S10_only_included_members_count_and_absent_is_not_null) {
  const FingerprintRule rule{.include = {"/amount", "/to/0", "/"}};
  EXPECT_EQ(json(R"({"amount":1,"to":["a","b"],"x":1})", rule),
            json(R"({"x":2,"to":["a"],"amount":1e0})", rule));
  expect_all_differ({json(R"({"amount":1,"to":["a"]})", rule), json(R"({"amount":1})", rule),
                     json(R"({"amount":1,"to":[null]})", rule), json(R"({"to":[1]})", rule),
                     json(R"({"amount":null,"to":["a"]})", rule), json("{}", rule),
                     json(R"({"":1})", rule), json(R"({"to":{"0":"a"},"amount":2})", rule),
                     json(R"({"amount":[1],"to":["a"]})", rule)});
  EXPECT_NE(json(R"({"a":1})", {.include = {""}}), json(R"({"a":2})", {.include = {""}}));
}

// A mistyped pointer, or an envelope that the API grew: without the whole body a misuse would
// replay.
TEST(FingerprintRules, T41_a_rule_that_meets_nothing_counts_the_whole_body) {
  const FingerprintRule rule{.include = {"/amount", "/to/0"}, .exclude = {"/time"}};
  expect_all_differ({json(R"({"amt":1})", rule), json(R"({"amt":2})", rule), json("{}", rule),
                     json(R"({"payment":{"amount":1}})", rule),
                     json(R"({"payment":{"amount":2}})", rule), json(R"([{"amount":1}])", rule),
                     json(R"([{"amount":2}])", rule), json("[]", rule), json("1", rule),
                     json("null", rule), json(R"({"amount":null})", rule),
                     json(R"({"amount":{}})", rule), json(R"({"amount":""})", rule),
                     json(R"({"to":[]})", rule), json(R"({"to":[null]})", rule)});
  EXPECT_EQ(json(R"({"amt":1,"time":1})", rule), json(R"({"time":2,"amt":1.0})", rule));
}

TEST(FingerprintRules, S10_array_indices_are_those_of_rfc_6901) {
  for (const std::string none : {"/00", "/01", "/-", "/+1", "/3", "/1 ", "/"}) {
    const FingerprintRule rule{.include = {none, "/1"}};
    EXPECT_EQ(json("[1,2,3]", rule), json("[4,2,6]", rule)) << none;
  }
  EXPECT_NE(json("[1,2,3]", {.include = {"/1"}}), json("[1,5,3]", {.include = {"/1"}}));
}

TEST(FingerprintRules, S10_an_excluded_member_is_absent_for_an_included_one) {
  const FingerprintRule rule{.include = {"/a", "/a/b/c", "/a/d"}, .exclude = {"/a/b"}};
  EXPECT_EQ(json(R"({"a":{"b":{"c":1},"d":2}})", rule), json(R"({"a":{"d":2}})", rule));
  EXPECT_NE(json(R"({"a":{"d":2}})", rule), json(R"({"a":{"d":3}})", rule));
}

TEST(FingerprintRules, S10_two_rules_never_give_one_fingerprint) {
  const std::string body = R"({"a":1})";
  expect_all_differ({json(body, {}), json(body, {.include = {"/a"}}), json(body, {.include = {""}}),
                     json(body, {.include = {"/a", "/b"}}), json(body, {.exclude = {"/b"}}),
                     json(body, {.exclude = {"/c"}}),
                     json(body, {.include = {"/a"}, .exclude = {"/b"}}),
                     json(body, {.headers = {"a"}}), json(body, {.headers = {"b"}})});
  EXPECT_EQ(json(body, {.include = {"/b", "/a", "/b"}, .headers = {"B", "a"}}),
            json(body, {.include = {"/a", "/b"}, .headers = {"A", "b", "B"}}));
}

TEST(FingerprintRules, S10_a_rule_leaves_bodies_that_are_no_json_alone) {
  const FingerprintRule rule{.include = {"/a"}};
  for (const std::string type : {"text/plain", "application/json"}) {
    expect_all_differ({digest(type, "{\"a\":1", rule), digest(type, "{\"a\":1 ", rule),
                       digest(type, R"({"b":1,"b":1})", rule),
                       digest(type, R"({"b":2,"b":2})", rule)});
  }
}

TEST(FingerprintRules, S10_chosen_headers_count_and_absent_is_not_empty) {
  const FingerprintRule rule{.headers = {"X-A", "X-B"}};
  const auto with = [&](std::vector<std::string_view> lines) {
    return digest("text/plain", "", rule, std::move(lines));
  };
  expect_all_differ({with({}), with({"X-A", ""}), with({"X-B", ""}), with({"X-A", "1"}),
                     with({"X-A", "1", "X-A", "2"}), with({"X-A", "2", "X-A", "1"}),
                     with({"X-A", "1, 2"}), with({"X-A", "1", "X-B", "2"})});
  EXPECT_EQ(with({"X-A", "1", "X-B", "2", "x-a", "3"}), with({"x-b", "2", "X-A", "1", "X-A", "3"}));
}

TEST(FingerprintRules, a_rule_that_cannot_be_followed_is_refused_with_a_sentence) {
  const auto why = [](const FingerprintRule& rule) {
    const auto checked = check_rule(rule);
    return checked ? std::string() : checked.error();
  };
  EXPECT_EQ(why({{"", "/a/0/~0~1"}, {"/"}, {"X-Api-Version"}}), "");
  EXPECT_NE(why({.include = {"a/b"}}).find("\"a/b\" is no JSON Pointer"), std::string::npos);
  EXPECT_NE(why({.exclude = {"/a~2"}}).find("\"/a~2\""), std::string::npos);
  EXPECT_NE(why({.exclude = {"/a~"}}), "");
  EXPECT_NE(why({.exclude = {""}}), "");
  EXPECT_NE(why({.headers = {"X A"}}).find("field name"), std::string::npos);
  EXPECT_NE(
      why({.headers = std::vector<std::string>(limits::fingerprint_rule_entries_max + 1, "a")}),
      "");
  // Followed all the same: everything counts.
  EXPECT_NE(json(R"({"a":1})", {.exclude = {""}}), json(R"({"a":2})", {.exclude = {""}}));
}

RC_GTEST_PROP(FingerprintRulesProperty, S10_documents_are_one_exactly_when_what_is_chosen_is, ()) {
  using Members = std::map<char, std::string>;
  const auto value = rc::gen::elementOf(
      std::vector<std::string>{"1", "null", "\"]},\\\"\"", "[]", "[{}]", "{\"a\":[1,{\"b\":2}]}"});
  const auto document = rc::gen::resize(
      4, rc::gen::container<Members>(rc::gen::elementOf(std::string("abcd")), value));
  const auto text = [](const Members& members) {
    std::string body = "{";
    for (auto at = members.rbegin(); at != members.rend(); ++at) {
      body += (body.size() > 1 ? ",\"" : "\"") + std::string(1, at->first) + "\":" + at->second;
    }
    return body + "}";
  };
  const auto without = [](Members members) {
    members.erase('b');
    members.erase('d');
    return members;
  };
  const auto only = [](const Members& members) {
    Members chosen;
    for (const char name : {'b', 'd'}) {
      if (members.contains(name)) chosen[name] = members.at(name);
    }
    return chosen;
  };
  const Members a = *document;
  Members b = *document;
  if (*rc::gen::arbitrary<bool>()) {
    b = a;
    b[*rc::gen::elementOf(std::string("abcd"))] = *value;
  }
  const FingerprintRule exclude{.exclude = {"/d", "/b"}};
  const FingerprintRule include{.include = {"/d", "/b"}};
  RC_ASSERT((json(text(a), exclude) == json(text(b), exclude)) == (without(a) == without(b)));
  // Where nothing is met, the whole body counts.
  const auto counted = [&](const Members& members) {
    return only(members).empty() ? members : only(members);
  };
  RC_ASSERT((json(text(a), include) == json(text(b), include)) == (counted(a) == counted(b)));
}

}  // namespace
}  // namespace idem
