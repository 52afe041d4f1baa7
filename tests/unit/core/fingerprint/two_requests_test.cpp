// Protocol §5 and §10: when two fingerprints prove two requests, so that a new key is safe.
#include <idem/fingerprint.hpp>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace idem {
namespace {

constexpr std::string_view json_media = "application/json";
constexpr std::string_view form_media = "application/x-www-form-urlencoded";

struct Sent {
  std::string body;
  std::string_view media = json_media;
  std::string_view coding = "";
  std::string_view target = "/pay";
  std::string_view method = "POST";
  FingerprintRule rule{};
  std::vector<std::string_view> headers{};
};

Fingerprint fingerprint_of(const Sent& sent) {
  const std::vector<std::string_view> codings{sent.coding};
  return fingerprint(Secret{}, {.method = sent.method,
                                .target = sent.target,
                                .content_type = sent.media,
                                .chosen_headers = sent.headers,
                                .body = sent.body,
                                .rule = &sent.rule,
                                .content_encoding = codings});
}

/// Of requests that are not taken for one.
bool proven(const Sent& one, const Sent& other) {
  const Fingerprint a = fingerprint_of(one);
  const Fingerprint b = fingerprint_of(other);
  EXPECT_FALSE(same_fingerprint(a, b)) << one.body << " | " << other.body;
  EXPECT_EQ(prove_two_requests(a, b), prove_two_requests(b, a));
  return prove_two_requests(a, b);
}

TEST(TwoRequests, S05_other_values_of_bodies_that_were_read_prove_them) {
  EXPECT_TRUE(proven({R"({"a":1})"}, {R"({"a":2})"}));
  EXPECT_TRUE(proven({R"({"a":0.1})"}, {R"({"a":0.10000000000000002})"}));
  EXPECT_TRUE(proven({R"({"a":"#1"})"}, {R"({"a":"#2"})"}));
  EXPECT_TRUE(proven({"a=1", form_media}, {"a=2", form_media}));
  EXPECT_TRUE(proven({"a=1&b=2", form_media}, {"a=1", form_media}));
  EXPECT_TRUE(proven({.body = "", .target = "/cancel/1"}, {.body = "", .target = "/cancel/2"}));
  EXPECT_TRUE(proven({.body = "{}", .method = "POST"}, {.body = "{}", .method = "PATCH"}));
  EXPECT_TRUE(proven({.body = "{}", .target = "/pay?a=1"}, {.body = "{}", .target = "/pay?a=2"}));
  const FingerprintRule rule{.exclude = {"/t"}, .headers = {"X-Account"}};
  EXPECT_TRUE(proven({.body = R"({"a":1,"t":1})", .rule = rule},
                     {.body = R"({"a":2,"t":1})", .rule = rule}));
  EXPECT_TRUE(proven({.body = "{}", .rule = rule, .headers = {"X-Account", "1"}},
                     {.body = "{}", .rule = rule, .headers = {"X-Account", "2"}}));
}

// The same JSON, compressed a second later, has other bytes.
TEST(TwoRequests, S05_an_encoded_body_proves_nothing) {
  for (const std::string_view coding : {"gzip", "br", "deflate", "zstd", "GZIP, br", "x"}) {
    for (const std::string_view media : {json_media, form_media, std::string_view("text/plain")}) {
      EXPECT_FALSE(proven({"one", media, coding}, {"other", media, coding})) << coding;
      EXPECT_FALSE(proven({"one", media, coding}, {R"({"a":1})"})) << coding;
      EXPECT_FALSE(proven({"one", media, coding}, {"a=1", form_media})) << coding;
    }
    EXPECT_FALSE(proven({"", json_media, coding}, {""})) << coding;
  }
  EXPECT_TRUE(proven({R"({"a":1})", json_media, "identity"}, {R"({"a":2})"}));
}

TEST(TwoRequests, S05_numbers_that_are_one_by_rfc_8785_prove_nothing) {
  EXPECT_FALSE(proven({R"({"a":333333333.33333329})"}, {R"({"a":333333333.3333333})"}));
  EXPECT_FALSE(proven({R"({"a":[9007199254740993]})"}, {R"({"a":[9007199254740992]})"}));
  EXPECT_FALSE(proven({R"({"a":1e-400})"}, {R"({"a":0})"}));
  EXPECT_FALSE(proven({"[1e400]"}, {"[1e401]"})) << "beyond all doubles";
  EXPECT_FALSE(proven({"[1e400]"}, {"[1]"}));
  EXPECT_TRUE(proven({R"({"a":333333333.33333329})"}, {R"({"a":333333333.4})"}));
  const FingerprintRule included{.include = {"/a"}};
  const FingerprintRule excluded{.exclude = {"/t"}};
  for (const FingerprintRule& rule : {included, excluded}) {
    EXPECT_FALSE(proven({.body = R"({"a":333333333.33333329})", .rule = rule},
                        {.body = R"({"a":333333333.3333333})", .rule = rule}));
  }
  EXPECT_TRUE(proven({.body = R"({"a":1,"t":1e-400})", .rule = excluded},
                     {.body = R"({"a":2,"t":1e-401})", .rule = excluded}));
}

TEST(TwoRequests, S05_a_body_whose_values_idem_does_not_read_proves_nothing) {
  const std::string deep = std::string(65, '[') + std::string(65, ']');
  for (const std::string& unread :
       {std::string(R"({"a":1,"a":1})"), deep, std::string("\"\xff\""), std::string(R"("\ud800")"),
        std::string("{"), std::string("\xff\xfe{\0}\0", 6)}) {
    EXPECT_FALSE(proven({unread}, {unread + " "})) << unread;
    EXPECT_FALSE(proven({unread}, {R"({"a":2})"})) << unread;
  }
  for (const std::string_view media :
       {"", "text/plain", "text/json", "application/xml", "application/octet-stream",
        "application/x-protobuf", "multipart/form-data; boundary=b", "multipart/form-data"}) {
    const std::string one = "--b\r\n\r\n1\r\n--b--";
    const std::string other = "--b\r\n\r\n2\r\n--b--";
    EXPECT_FALSE(proven({one, media}, {other, media})) << media;
    EXPECT_FALSE(proven({one, media}, {R"({"a":1})"})) << media;
  }
  EXPECT_FALSE(proven({"a=%E9", form_media}, {"a=%C3%A9", form_media})) << "of another charset";
  EXPECT_FALSE(proven({"a=%", form_media}, {"a=1", form_media})) << "a broken escape";
  EXPECT_FALSE(proven({R"({"a":1})"}, {"a=1", form_media})) << "of two kinds";
  EXPECT_FALSE(proven({"{}"}, {""}));
}

TEST(TwoRequests, S05_another_spelling_proves_nothing) {
  const std::pair<const char*, const char*> forms[] = {
      {"a=%7E", "a=~"}, {"a=+1", "a=%201"},     {"a=1&", "a=1"},
      {"a", "a="},      {"a.b=1", "a[b]=1"},    {"a.b=1", "a_b=1"},
      {"A=1", "a=1"},   {"a=1&a=2", "a=2&a=1"}, {"a[1]=1", "a[01]=1"}};
  for (const auto& [one, other] : forms) {
    EXPECT_FALSE(proven({one, form_media}, {other, form_media})) << one << " | " << other;
  }
  const std::pair<const char*, const char*> targets[] = {{"/pay?a=1&b=2", "/pay?b=2&a=1"},
                                                         {"/pay?q=%20", "/pay?q=+"},
                                                         {"/pay?", "/pay"},
                                                         {"/p%61y", "/pay"}};
  for (const auto& [one, other] : targets) {
    EXPECT_FALSE(proven({.body = "{}", .target = one}, {.body = "{}", .target = other})) << one;
  }
  EXPECT_FALSE(proven({"{}", "application/json"}, {"{}", "application/vnd.api+json"}));
}

TEST(TwoRequests, S05_another_rule_or_version_proves_nothing) {
  const FingerprintRule rule{.exclude = {"/t"}};
  EXPECT_FALSE(proven({.body = R"({"a":1})", .rule = rule}, {R"({"a":2})"}));
  Fingerprint face = fingerprint_of({R"({"a":1})"});
  face.version = 0;
  EXPECT_EQ(body_kind(face), BodyKind::unread) << "the bytes that a service gave are its own";
  EXPECT_FALSE(prove_two_requests(face, fingerprint_of({R"({"a":2})"})));
  Fingerprint kind_of_tomorrow = fingerprint_of({R"({"a":1})"});
  kind_of_tomorrow.digest[8] = 9;
  EXPECT_EQ(body_kind(kind_of_tomorrow), BodyKind::unread);
}

RC_GTEST_PROP(TwoRequestsProperty, S05_two_forms_that_say_the_same_are_never_proven_two, ()) {
  const auto fields = *rc::gen::container<std::vector<std::pair<char, char>>>(rc::gen::pair(
      rc::gen::elementOf(std::string("aAb")), rc::gen::elementOf(std::string("1~ "))));
  const auto spelled = [](char c, bool escaped) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    if (!escaped && c != ' ') return std::string(1, c);
    if (!escaped) return std::string("+");
    return std::string("%") + digits[static_cast<unsigned char>(c) >> 4] + digits[c & 15];
  };
  const auto written = [&] {
    std::string body;
    for (const auto& [name, value] : fields) {
      if (!body.empty()) body += '&';
      body += spelled(name, *rc::gen::arbitrary<bool>()) + '=';
      body += spelled(value, *rc::gen::arbitrary<bool>());
    }
    return body;
  };
  RC_ASSERT(!prove_two_requests(fingerprint_of({written(), form_media}),
                                fingerprint_of({written(), form_media})));
}

}  // namespace
}  // namespace idem
