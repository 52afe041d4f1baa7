#include "support/problem.hpp"

#include "support/external_data.hpp"
#include "support/json.hpp"

namespace idem::test {
namespace {

std::string describe(const Response& response) {
  return "\nanswer was " + std::to_string(response.status) + " " + response.trouble + "\n" +
         response.raw;
}

/// The objection of RFC 9457's own schema to one member; empty when none.
std::string against_schema(const Json& rule, const Json& value) {
  const auto& type = rule["type"].string;
  if (type == "string" && value.kind != Json::Kind::string) return "is no string";
  if (type == "integer" && value.kind != Json::Kind::integer) return "is no integer";
  if (rule.has("minimum") && value.integer < rule["minimum"].integer) return "is below the minimum";
  if (rule.has("maximum") && value.integer > rule["maximum"].integer) return "is above the maximum";
  if (rule["format"].string == "uri-reference" &&
      value.string.find_first_of(" \"<>\\^`{|}") != std::string::npos) {
    return "is no URI reference";
  }
  return {};
}

std::string first_violation(const Json& problem) {
  for (const auto& [name, value] : problem.members) {
    if (value.kind == Json::Kind::null) return name + " is null instead of absent";
  }
  for (const auto* name : {"type", "title", "detail", "code"}) {
    if (problem[name].string.empty()) return std::string(name) + " is missing or no text";
  }
  if (problem["status"].kind != Json::Kind::integer) return "status is missing or no integer";
  if (problem.has("retry")) {
    const auto& retry = problem["retry"].string;
    if (retry != "never" && retry != "later" && retry != "same_key" && retry != "new_key_safe") {
      return "retry is none of the four words: " + retry;
    }
  }
  const auto data = external_data();
  if (data.empty()) return {};
  const auto schema =
      parse_json(read_file(data / "problem-json" / "rfc9457-appendix-a.schema.json"));
  if (!schema) return "the schema cannot be read";
  for (const auto& [name, rule] : (*schema)["properties"].members) {
    if (!problem.has(name)) continue;
    const auto trouble = against_schema(rule, problem[name]);
    if (!trouble.empty()) return name + " " + trouble;
  }
  return {};
}

}  // namespace

testing::AssertionResult is_problem(const Response& response, int status, std::string_view code) {
  const auto fail = [&] { return testing::AssertionFailure(); };
  if (response.status != status) {
    return fail() << "expected " << status << " " << code << describe(response);
  }
  if (response.get("Content-Type") != "application/problem+json") {
    return fail() << "no application/problem+json" << describe(response);
  }
  const auto problem = parse_json(response.body);
  if (!problem || problem->kind != Json::Kind::object) {
    return fail() << "the body is no JSON object" << describe(response);
  }
  const auto trouble = first_violation(*problem);
  if (!trouble.empty()) return fail() << trouble << describe(response);
  if ((*problem)["status"].integer != status) return fail() << "status differs from the line";
  if ((*problem)["code"].string != code) {
    return fail() << "expected code " << code << describe(response);
  }
  return testing::AssertionSuccess();
}

std::string json_text(std::string_view body, std::string_view member) {
  const auto json = parse_json(body);
  return json ? (*json)[member].string : std::string{};
}

}  // namespace idem::test
