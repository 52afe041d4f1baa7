#include "core/fingerprint/method_override.hpp"

#include <gtest/gtest.h>
#include <idem/fingerprint.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace idem {
namespace {

MethodOverride of_query(std::string_view query) {
  MethodOverride asked;
  asked.add_query(query);
  return asked;
}

MethodOverride of_body(std::string_view type, std::string_view body) {
  MethodOverride asked;
  asked.add_body(type, body);
  return asked;
}

constexpr std::string_view urlencoded = "application/x-www-form-urlencoded";

TEST(MethodOverride, S08_fields_are_found_however_a_server_may_read_their_names) {
  for (const auto* name : {"X-HTTP-Method-Override", "x-http-method-override", "X-Method-Override",
                           "X-HTTP-Method", "X_HTTP_METHOD", "XHttpMethod", "-X-Http-Method-"}) {
    EXPECT_TRUE(MethodOverride::is_field(name)) << name;
  }
  for (const auto* name :
       {"", "X", "-", "X-HTTP-Methods", "X-HTTP-Method-Override-By", "HTTP-Method",
        "Access-Control-Request-Method", "X-HTTP-Version-Override", "_method"}) {
    EXPECT_FALSE(MethodOverride::is_field(name)) << name;
  }
}

TEST(MethodOverride, S08_parameters_are_found_however_a_server_may_read_their_names) {
  for (const std::string& query : std::vector<std::string>{
           "_method=PUT", "a=1&_method=PUT", "a=1;_method=PUT", "&&_method=PUT&", "%5Fmethod=PUT",
           "%5f%6d%65%74%68%6f%64=PUT", "_METHOD=PUT", ".method=PUT", "+method=x&_method=PUT",
           "%20_method=PUT", "_method%20=PUT", "[method=PUT", "_method%00a=PUT", "_method=%50UT",
           "X-HTTP-Method-Override=PUT", "x_http_method=PUT",
           std::string(500, '+') + "_method=PUT"}) {
    const auto asked = of_query(query);
    EXPECT_TRUE(asked.asked()) << query;
    EXPECT_TRUE(asked.is_clear()) << query;
    EXPECT_EQ(asked.method(), "PUT") << query;
    EXPECT_TRUE(of_body(urlencoded, query).asked()) << query;
    EXPECT_TRUE(of_body("", query).asked()) << query;
    EXPECT_FALSE(of_body("text/plain", query).asked()) << query;
  }
  for (const std::string query : {"", "=", "&", "method=PUT", "x_method=PUT", "_methods=PUT",
                                  "_method_=PUT", "a=_method=PUT", "%5", "a[_method]=PUT"}) {
    EXPECT_FALSE(of_query(query).asked()) << query;
  }
  EXPECT_TRUE(of_query("_method").asked() && !of_query("_method").is_clear());
}

TEST(MethodOverride, S08_parts_are_found_however_a_server_may_read_their_names) {
  const auto multipart = [](const std::string& head) {
    return of_body("multipart/form-data; boundary=b",
                   "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b\r\n" + head +
                       "\r\n\r\nPUT\r\n--b--\r\n");
  };
  for (const std::string head :
       {"Content-Disposition: form-data; name=\"_method\"",
        "content-disposition:form-data;name=_method",
        "Content-Disposition: form-data; name = \"_method\"",
        "Content-Disposition: form-data; name='_method'",
        "Content-Disposition: form-data; filename=\"x\"; name=\"_method\"",
        "Content-Disposition: form-data;\r\n name=\"_method\"",
        "Content-Disposition: form-data; name*=UTF-8''%5Fmethod",
        "Content-Type: text/plain\r\nContent-Disposition: form-data; name=\"_method\"",
        "Content-Disposition: form-data; name=\"_method\"\r\nContent-Type: text/plain"}) {
    const auto asked = multipart(head);
    EXPECT_TRUE(asked.asked()) << head;
    EXPECT_TRUE(asked.is_clear()) << head;
    EXPECT_EQ(asked.method(), "PUT") << head;
  }
  for (const std::string head :
       {"Content-Disposition: form-data; name=\"method\"", "Content-Disposition: form-data",
        "Content-Disposition: form-data; filename=\"_method\"",
        "Content-Disposition: form-data; name=\"f\"\r\n\r\n<input name=\"_method\" value=\"put\">",
        "X: Content-Disposition: form-data; name=\"_method\""}) {
    EXPECT_FALSE(multipart(head).asked()) << head;
  }
}

// Read once: of a part for each of these lines the rest would be read as often as there are lines.
TEST(MethodOverride, S08_parts_without_an_end_are_read_once) {
  std::string body;
  while (body.size() < 8'000'000) body += "content-disposition;name=a\n";
  EXPECT_FALSE(of_body("multipart/form-data", body).asked());
  std::string of_the_name;
  while (of_the_name.size() < 8'000'000) of_the_name += "content-disposition;name=_method\n";
  EXPECT_TRUE(of_body("multipart/form-data", of_the_name).asked());
}

TEST(MethodOverride, S08_the_member_of_a_json_object_is_found) {
  for (const std::string body : {R"({"_method":"PUT"})", R"({"a":{},"_method":"PUT","b":1})",
                                 R"({"\u005fmethod":"P\u0055T"})"}) {
    for (const auto* type : {"application/json", "application/vnd.a+json; charset=utf-8"}) {
      const auto asked = of_body(type, body);
      EXPECT_TRUE(asked.asked() && asked.is_clear()) << body;
      EXPECT_EQ(asked.method(), "PUT");
    }
    EXPECT_FALSE(of_body("text/plain", body).asked());
  }
  for (const std::string body :
       {R"({"_method":null})", R"({"_method":["PUT"]})", R"({"_method":""})",
        R"({"_method":"PUT","_method":"DELETE"})", R"({"_method":"PUT")"}) {
    const auto asked = of_body("application/json", body);
    EXPECT_TRUE(asked.asked()) << body;
    EXPECT_FALSE(asked.is_clear()) << body;
  }
  for (const std::string body :
       {"", "{}", "[]", R"({"a":{"_method":"PUT"}})", R"(["_method"])", R"({"a":"_method"})",
        R"({"method":"PUT"})", R"({"a":"\u005f"})", R"({"payment_method":1,"payment_method":2})"}) {
    EXPECT_FALSE(of_body("application/json", body).asked()) << body;
  }
}

TEST(MethodOverride, S08_is_clear_only_where_all_name_one_method) {
  MethodOverride asked;
  asked.add_field("X-HTTP-Method-Override", "patch");
  asked.add_query("_method=patch");
  EXPECT_TRUE(asked.is_clear());
  EXPECT_EQ(asked.method(), "PATCH");
  auto other = asked;
  other.add_field("X-HTTP-Method", "PATCH");
  EXPECT_FALSE(other.is_clear()) << "some servers compare with case";
  for (const std::string value : {"", "a b", "PUT,", "PUT, x: y", "P\n", "\xc3\xa9"}) {
    MethodOverride one;
    one.add_field("X-HTTP-Method", value);
    EXPECT_TRUE(one.asked() && !one.is_clear()) << value;
  }
}

TEST(MethodOverride, S10_what_counts_tells_each_place_and_value_from_others) {
  const auto field = [](std::string_view name, std::string_view value) {
    MethodOverride asked;
    asked.add_field(name, value);
    return asked.counted("POST");
  };
  EXPECT_EQ(field("X-HTTP-Method", "PUT"), field("x-http-method", "PUT"));
  EXPECT_NE(field("X-HTTP-Method", "PUT"), field("X-HTTP-Method", "put"));
  EXPECT_NE(field("X-HTTP-Method", "PUT"), field("X_HTTP_Method", "PUT"));
  EXPECT_NE(field("X-HTTP-Method", "PUT"), of_query("_method=PUT").counted("POST"));
  EXPECT_NE(of_query("_method=PUT").counted("POST"),
            of_body(urlencoded, "_method=PUT").counted("POST"));
  EXPECT_NE(field("X-HTTP-Method", "PUT"), "POST");
}

TEST(CountedFields, S10_those_that_always_count_are_few) {
  for (const auto* name : {"SOAPAction", "soap_action", "Stripe-Account", "Content-Language",
                           "X-Amz-Target", "Destination"}) {
    EXPECT_TRUE(counts_always(name)) << name;
  }
  for (const auto* name :
       {"", "Content-Type", "Content-Length", "Stripe-Version", "If-Match", "Authorization",
        "Accept-Language", "Date", "X-Amz-Date", "X-Original-URL-And-Something-Long"}) {
    EXPECT_FALSE(counts_always(name)) << name;
  }
}

// A rule is younger than the records of its route; what always counts is not.
TEST(CountedFields, S10_fields_that_always_count_do_so_in_each_version) {
  const FingerprintRule rule{.headers = {"X-A"}};
  const auto made = [](std::vector<std::string_view> lines, const FingerprintRule* by) {
    return RequestDigest({.method = "POST",
                          .target = "/",
                          .content_type = "text/plain",
                          .chosen_headers = lines,
                          .body = "x",
                          .rule = by})
        .under(secret_from("s"));
  };
  const auto before = made({"SOAPAction", "pay"}, nullptr).front();
  const auto finds = [&](std::vector<std::string_view> lines) {
    const auto all = made(std::move(lines), &rule);
    return std::ranges::any_of(
        all, [&](const Fingerprint& one) { return same_fingerprint(one, before); });
  };
  EXPECT_TRUE(finds({"SOAPAction", "pay"}));
  EXPECT_TRUE(finds({"X-A", "1", "soapaction", "pay"}));
  EXPECT_FALSE(finds({"SOAPAction", "refund"}));
  EXPECT_FALSE(finds({"X-A", "1"}));
  EXPECT_FALSE(finds({"SOAPAction", "pay", "Destination", "b"}));
}

}  // namespace
}  // namespace idem
