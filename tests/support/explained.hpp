#pragma once

#include <string>
#include <string_view>

#include "core/bytes/base64.hpp"
#include "support/admin.hpp"
#include "support/json.hpp"

namespace idem::test {

inline std::string json_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

/// The request as POST /v1/explain asks about it; `more`: further members.
inline std::string question(const Request& request, const std::string& more = {}) {
  std::string headers;
  for (const auto& [name, value] : request.fields) {
    headers += (headers.empty() ? "[" : ",[") + json_quoted(name) + "," + json_quoted(value) + "]";
  }
  return R"({"method":)" + json_quoted(request.method) + R"(,"target":)" +
         json_quoted(request.target) + R"(,"headers":[)" + headers + R"(],"body_b64":")" +
         to_base64(request.body) + "\"" + more + "}";
}

/// A gateway whose operator asks what would become of requests.
class Explained : public Operated {
 protected:
  Json explain(const Request& request, const std::string& more = {}) {
    const auto answer = post("/v1/explain", question(request, more));
    EXPECT_EQ(answer.status, 200) << answer.raw;
    return parse_json(answer.body).value_or(Json{});
  }

  /// Asks what would become of the request, then sends it: the answer is as foretold.
  Json foretold(const Request& request, std::string_view outcome) {
    Json before = explain(request);
    EXPECT_EQ(before["outcome"].string, outcome) << before["why"].string;
    EXPECT_EQ(before["enforce"].string, "on");
    EXPECT_FALSE(before["why"].string.empty());
    const auto answer = ask(request);
    EXPECT_NE(answer.status, 0) << answer.trouble;
    const Json& said = before["answer"];
    if (said["status"].kind == Json::Kind::null) {
      const bool ran = answer.get("Idempotency-Outcome") && !answer.get("Idempotent-Replayed");
      EXPECT_TRUE(ran || outcome == "pass" || outcome == "execute") << answer.raw;
      EXPECT_FALSE(answer.get("Idempotent-Replayed")) << answer.raw;
    } else {
      EXPECT_EQ(said["status"].integer, answer.status) << before["why"].string << answer.raw;
    }
    if (said["code"].kind == Json::Kind::string) {
      EXPECT_EQ(said["code"].string, code_of(answer)) << answer.raw;
      EXPECT_EQ(said["retry"].string, retry_of(answer)) << answer.raw;
    }
    if (before["operation_ref"].kind == Json::Kind::string) expect_ref(answer, before);
    return before;
  }

 private:
  /// A member of a problem, in the form of Stripe's errors, too.
  static std::string member(const Response& answer, const char* name, const char* stripes) {
    const Json body = parse_json(answer.body).value_or(Json{});
    return body.has("error") ? body["error"][stripes].string : body[name].string;
  }
  static std::string code_of(const Response& answer) { return member(answer, "code", "idem_code"); }
  static std::string retry_of(const Response& answer) { return member(answer, "retry", "retry"); }
  static void expect_ref(const Response& answer, const Json& before) {
    const std::string ref = member(answer, "operation_ref", "operation_ref");
    if (!ref.empty()) {
      EXPECT_EQ(ref, before["operation_ref"].string) << answer.raw;
    }
  }
};

}  // namespace idem::test
