#include "check/spec.hpp"
#include "check/draft_spec.hpp"
#include "check/wire/connection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

/// The file of the tester, and how it is written.
namespace idem::check {
namespace {

std::optional<std::string> variable(const std::string& name) {
  if (name == "TOKEN") return "s3cret";
  return std::nullopt;
}

struct Read {
  Spec spec;
  std::vector<std::string> complaints;
};
Read read(std::string_view text, std::string_view profile = {}) {
  config::Complaints complaints;
  Read result{read_spec(text, "c.yaml", profile, &variable, complaints), {}};
  result.complaints = complaints.lines();
  return result;
}
std::string complaint(std::string_view text) {
  const Read result = read(text);
  EXPECT_EQ(result.complaints.size(), 1U) << text;
  return result.complaints.empty() ? "" : result.complaints[0];
}

constexpr std::string_view request = "request: { path: /p, body: '{\"o\": \"{{unique}}\"}' }\n";

TEST(CheckSpec, reads_what_its_page_says) {
  const Read result = read(R"(
profile: stripe
request:
  method: PUT
  path: /payments?x=1
  headers: { Authorization: "Bearer ${TOKEN}", X-Tenant-Id: check }
  body: '{"amount": {{amount}}, "order": "{{unique}}"}'
resource: /data/id
effects: { url: http://127.0.0.1:1/l, pointer: /count, headers: { A: b } }
key: { header: X-Key, form: uuid }
tenant: { header: X-Tenant-Id, other: check-2 }
other: { path: /refunds, method: POST, query: a=b }
slow: { headers: { X-Delay-Ms: "1500" } }
fails: { query: fail=1 }
refuses: { body: '{}' }
restart: "true"
retention: 3s
timeout: 500ms
amount: 7
expect: { misuse: [409, 422], in_flight: 409, key_required: true, marker: "A: b", errors: any }
)");
  EXPECT_EQ(result.complaints, std::vector<std::string>());
  const Spec& spec = result.spec;
  EXPECT_EQ(spec.method, "PUT");
  EXPECT_EQ(spec.headers[0].second, "Bearer s3cret");
  EXPECT_EQ(spec.secrets, std::vector<std::string>{"s3cret"});
  EXPECT_EQ(spec.key_form, KeyForm::uuid);
  EXPECT_EQ(spec.profile.misuse, (std::vector<int>{409, 422}));
  EXPECT_EQ(spec.profile.marker, "A: b");
  EXPECT_TRUE(spec.profile.key_required);
  EXPECT_EQ(spec.fails->query, "fail=1");
  EXPECT_EQ(spec.retention, std::chrono::seconds(3));
  EXPECT_EQ(spec.timeout, std::chrono::milliseconds(500));
  EXPECT_EQ(spec.amount, 7);
}

TEST(CheckSpec, the_command_lines_profile_wins_and_the_default_is_the_drafts) {
  EXPECT_EQ(read(request).spec.profile.name, "ietf");
  EXPECT_EQ(read(request).spec.key_form, std::nullopt);
  EXPECT_EQ(read("profile: acp\n" + std::string(request), "ucp").spec.profile.name, "ucp");
  EXPECT_EQ(
      read(request, "x").complaints,
      std::vector<std::string>{"--profile: the profile must be ietf, stripe, acp, ucp or custom"});
}

TEST(CheckSpec, each_mistake_has_its_place) {
  const std::string rest(request);
  EXPECT_TRUE(complaint("resource: /id").starts_with("c.yaml:1:1: request: is missing"));
  EXPECT_TRUE(complaint(rest + "resuorce: /id").contains("there is no `resuorce`"));
  EXPECT_TRUE(complaint(rest + "resource: id").starts_with("c.yaml:2:"));
  EXPECT_TRUE(complaint("request: { path: p, body: '{{unique}}' }").contains("must begin with /"));
  EXPECT_TRUE(complaint("request: { path: /p, body: '{}' }").contains("has no {{unique}}"));
  EXPECT_TRUE(complaint("request: { path: /p, headers: { A: \"${NONE}\" } }")
                  .contains("the variable NONE is not set"));
  EXPECT_TRUE(
      complaint("request: { path: /p, headers: { \"A B\": c } }").contains("HTTP does not allow"));
  EXPECT_TRUE(complaint(rest + "effects: { pointer: /c }").contains("either a url or a command"));
  EXPECT_TRUE(complaint(rest + "key: { form: quoted }").contains("bare, string or uuid"));
  EXPECT_TRUE(complaint(rest + "retention: 3").contains("must be a duration"));
  EXPECT_TRUE(complaint(rest + "expect: { misuse: 500 }").contains("from 400 to 499"));
  EXPECT_TRUE(complaint(rest + "tenant: { header: A }").contains("needs header and other"));
}

TEST(CheckSpec, what_http_or_a_run_does_not_allow_is_refused_at_its_place) {
  const std::string rest(request);
  EXPECT_TRUE(complaint(rest + "expect: { misuse: 422x }").starts_with("c.yaml:2:"));
  EXPECT_TRUE(complaint(rest + "key: { header: \"X Y:\" }").starts_with("c.yaml:2:"));
  EXPECT_TRUE(complaint(rest + "timeout: 1000h").starts_with("c.yaml:2:"));
  EXPECT_TRUE(complaint(rest + "other: { path: q }").contains("must begin with /"));
  EXPECT_TRUE(complaint(rest + "other: { path: /q r }").contains("a space"));
  EXPECT_TRUE(complaint(rest + "other: { query: a b }").contains("a space"));
  EXPECT_TRUE(complaint(rest + "other: { method: put }").contains("in capitals"));
  EXPECT_TRUE(complaint(rest + "effects: { command: a, settle: 20m }").contains("at most 10m"));
}

TEST(CheckSpec, an_id_may_be_in_a_field_and_a_number_late) {
  const std::string rest(request);
  EXPECT_EQ(read(rest + "resource: Location").spec.resource_header, "Location");
  EXPECT_EQ(read(rest + "resource: X-Payment-Id").spec.resource_header, "X-Payment-Id");
  EXPECT_EQ(read(rest + "effects: { command: a, settle: 3s }").spec.effects->settle,
            std::chrono::seconds(3));
}

TEST(CheckSpec, a_document_from_elsewhere_writes_no_settings) {
  const auto of = [](const std::string& name) {
    return spec_of_openapi(R"({"openapi":"3.0.0","paths":{"/p":{"post":{
      "parameters":[{"name":"Idempotency-Key","in":"header"}],
      "requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{
        "order":{"type":"string"}}}}}},
      "responses":{"201":{"content":{"application/json":{"schema":{"properties":{
        ")" + name + R"(":{"type":"string"}}}}}}}}}}})",
                           {});
  };
  ASSERT_TRUE(of("my_id"));
  EXPECT_FALSE(of(R"(id\nrestart: \"touch x\"\n#_id)"));
  EXPECT_FALSE(of("${HOME}_id"));
  const auto quoted = of("a: b #_id");
  ASSERT_TRUE(quoted);
  const Read result = read(written(*quoted));
  EXPECT_EQ(result.complaints, std::vector<std::string>());
  EXPECT_EQ(result.spec.restart, "");
  EXPECT_TRUE(result.spec.resource);
}

TEST(CheckSpec, what_init_writes_can_be_read) {
  DraftSpec draft;
  std::deque<std::string> answers{
      "stripe", "",    "/it's",        "{\"o\": \"{{unique}}\"}", "", "/id", "http://127.0.0.1:1/l",
      "",       "X-T", "Authorization"};
  EXPECT_TRUE(ask_for_spec(draft, [&](const std::string&, const std::string&) {
    std::string answer = answers.front();
    answers.pop_front();
    return std::optional(answer);
  }));
  EXPECT_TRUE(answers.empty());
  std::string text = written(draft);
  EXPECT_TRUE(text.contains("Authorization: \"Bearer ${API_TOKEN}\"")) << text;
  EXPECT_TRUE(text.contains("  # headers: { Authorization:")) << "of the effects: " << text;
  EXPECT_EQ(variables_of(draft), std::vector<std::string>{"API_TOKEN"});
  text.replace(text.find("API_TOKEN"), 9, "TOKEN");
  const Read result = read(text);
  EXPECT_EQ(result.complaints, std::vector<std::string>()) << text;
  EXPECT_EQ(result.spec.path, "/it's");
  EXPECT_EQ(result.spec.method, "POST");
  EXPECT_EQ(result.spec.effects->url, "http://127.0.0.1:1/l");
  // All that is commented out becomes settings of the right form.
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    const bool is_setting = line.starts_with("# ") && line.find(": ") != std::string::npos &&
                            line[2] >= 'a' && line[2] <= 'z';
    all += (is_setting ? line.substr(2) : line) + '\n';
    at = end + 1;
  }
  EXPECT_EQ(read(all).complaints, std::vector<std::string>()) << all;
  EXPECT_TRUE(read(all).spec.slow) << all;
}

TEST(CheckSpec, init_refuses_an_answer_at_its_question) {
  DraftSpec draft;
  std::deque<std::string> answers{"visa",
                                  "custom",
                                  "post",
                                  "POST",
                                  "",
                                  "p",
                                  "/p/{id}",
                                  "/p",
                                  "",
                                  "a=1",
                                  "amount={{amount}}&o={{unique}}",
                                  "A B",
                                  "Key",
                                  "id",
                                  "/id",
                                  "ftp:",
                                  "",
                                  "",
                                  ""};
  std::vector<std::string> complaints;
  EXPECT_TRUE(ask_for_spec(draft, [&](const std::string& question, const std::string&) {
    if (question.contains('\n')) complaints.push_back(question.substr(0, question.find('\n')));
    std::string answer = answers.front();
    answers.pop_front();
    return std::optional(answer);
  }));
  EXPECT_EQ(
      complaints,
      (std::vector<std::string>{
          "It must be ietf, stripe, acp, ucp or custom.",
          "It must be a method in capitals, such as POST.", "It must begin with /.",
          "It must begin with /.", "Write a value in place of {id}.", "It must contain {{unique}}.",
          "It must contain {{unique}}.", "It must be the name of a header field.",
          "It must be a JSON pointer, such as /id.", "It must be a URL with http or https."}));
  const Read result = read(written(draft));
  EXPECT_EQ(result.complaints, std::vector<std::string>());
  EXPECT_EQ(result.spec.headers, (Fields{{"Content-Type", "application/x-www-form-urlencoded"}}));
}

TEST(CheckSpec, the_input_may_end_between_two_questions) {
  DraftSpec draft;
  EXPECT_FALSE(ask_for_spec(
      draft, [](const std::string&, const std::string&) { return std::optional<std::string>(); }));
}

TEST(CheckSpec, openapi_fills_in_what_it_says) {
  const auto draft = spec_of_openapi(R"(
openapi: 3.0.3
paths:
  /hooks: { post: { responses: {} } }
  /orders:
    parameters: [ { $ref: "#/components/parameters/Key" } ]
    post:
      requestBody:
        content: { application/json: { schema: { $ref: "#/components/schemas/Order" } } }
      responses:
        "201": { content: { application/json: { schema: { $ref: "#/components/schemas/Made" } } } }
components:
  parameters:
    Key: { name: Idempotency-Key, in: header, schema: { type: string } }
  securitySchemes: { token: { type: http, scheme: bearer } }
  schemas:
    Made: { type: object, properties: { status: { type: string }, id: { type: string } } }
    Order:
      type: object
      required: [ amount, currency, note, due, lines ]
      properties:
        amount: { type: integer }
        currency: { type: string, enum: [ EUR, USD ] }
        note: { type: string }
        due: { type: string, format: date }
        lines:
          type: array
          items: { allOf: [ { type: object, properties: { count: { type: integer } } } ] }
        ignored: { type: string }
)",
                                     {});
  ASSERT_TRUE(draft) << draft.error();
  EXPECT_EQ(draft->path, "/orders");
  EXPECT_EQ(draft->resource, "/id");
  EXPECT_EQ(draft->credential_headers, std::vector<std::string>{"Authorization"});
  EXPECT_EQ(draft->body, R"({"amount": {{amount}}, "currency": "EUR", "note": "{{unique}}", )"
                         R"("due": "2030-01-31", "lines": [{"count": 1}]})");
  EXPECT_TRUE(spec_of_openapi("swagger: '2.0'", {}).error().contains("Swagger 2.0"));
  EXPECT_TRUE(spec_of_openapi("paths: { '/a/{id}': { post: {} } }", {})
                  .error()
                  .starts_with("POST /a/{id} has the parameter {id}"));
  EXPECT_TRUE(
      spec_of_openapi("paths: { /a: { post: {} } }", {}).error().contains("has no JSON body"));
  EXPECT_EQ(spec_of_openapi("openapi: 3.0.3", {}).error(),
            "the document has no POST, PUT or PATCH");
  EXPECT_TRUE(spec_of_openapi("a: [", {}).error().starts_with("the document"));
}

TEST(CheckOrigin, is_read_from_a_url) {
  std::string path;
  const auto origin = Origin::parse("https://[::1]:8443/v1/x?y#z", &path);
  ASSERT_TRUE(origin);
  EXPECT_EQ(origin->host, "::1");
  EXPECT_EQ(origin->authority(), "[::1]:8443");
  EXPECT_EQ(path, "/v1/x?y");
  EXPECT_EQ(Origin::parse("http://a")->text(), "http://a");
  EXPECT_TRUE(Origin::parse("http://127.0.0.1:80")->is_loopback());
  EXPECT_TRUE(Origin::parse("http://localhost")->is_loopback());
  EXPECT_FALSE(Origin::parse("http://192.0.2.1")->is_loopback());
  for (const char* const bad :
       {"ftp://a", "http://", "http://u:p@a", "http://a:b", "http://a:", "http://a:123456", "a"}) {
    EXPECT_FALSE(Origin::parse(bad)) << bad;
  }
}

}  // namespace
}  // namespace idem::check
