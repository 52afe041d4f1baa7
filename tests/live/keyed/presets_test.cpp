#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/json.hpp"
#include "support/scripted_live.hpp"

/// protocol.md §12 over the wire: every row under every preset.
namespace idem::test {
namespace {

enum class Meaning : std::uint8_t { stored, released, unknown };

struct Row {
  int status;
  bool retry_after;
  Meaning ietf;
  Meaning stripe;
  Meaning lenient;
};

using enum Meaning;

constexpr Row rows[] = {
    {200, false, stored, stored, stored},       {201, false, stored, stored, stored},
    {204, false, stored, stored, stored},       {302, false, stored, stored, stored},
    {303, true, stored, stored, stored},        {400, false, stored, stored, stored},
    {402, false, stored, stored, stored},       {404, false, stored, stored, stored},
    {409, false, stored, stored, stored},       {410, false, stored, stored, stored},
    {413, false, stored, stored, stored},       {422, true, stored, stored, stored},
    {401, false, released, released, released}, {403, false, released, released, released},
    {429, true, released, released, released},  {408, false, unknown, stored, released},
    {409, true, unknown, stored, released},     {500, false, unknown, stored, released},
    {501, false, unknown, stored, released},    {503, true, unknown, stored, released},
    {505, false, unknown, stored, released},    {507, false, unknown, stored, released},
    {599, false, unknown, stored, released},    {502, false, unknown, stored, unknown},
    {504, false, unknown, stored, unknown},     {421, false, released, released, released},
    {425, false, released, released, released},
};

Meaning under(const Row& row, std::string_view preset) {
  if (preset == "stripe") return row.stripe;
  return preset == "lenient" ? row.lenient : row.ietf;
}

/// Answers with the status that the path asks for, and numbers its answers.
void answer_as_asked(UpstreamConnection& connection) {
  for (int number = 1; const auto request = connection.read_request(); ++number) {
    const auto& target = request->target();
    const bool retry_after = target.ends_with("/later");
    const auto body = fmt::format("answer {}", number);
    const bool empty = target.starts_with("/204");
    connection.write(fmt::format("HTTP/1.1 {} Said\r\n{}{}\r\n{}", target.substr(1, 3),
                                 retry_after ? "Retry-After: 7\r\n" : "",
                                 empty ? "" : fmt::format("Content-Length: {}\r\n", body.size()),
                                 empty ? "" : body));
  }
}

Request asking_for(const Row& row) {
  auto request = charge(fmt::format("k{}{}", row.status, row.retry_after));
  request.target = fmt::format("/{}{}", row.status, row.retry_after ? "/later" : "");
  return request;
}

class Presets : public Scripted, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    Scripted::SetUp();
    ASSERT_NO_FATAL_FAILURE(start(answer_as_asked, {"--preset", GetParam()}));
  }
};

TEST_P(Presets, S12_V16_every_row_equals_the_preset) {
  int expected_requests = 0;
  for (const auto& row : rows) {
    SCOPED_TRACE(fmt::format("{} {}{}", GetParam(), row.status, row.retry_after ? " later" : ""));
    const auto meaning = under(row, GetParam());
    const auto first = ask(asking_for(row));
    EXPECT_EQ(first.status, row.status) << "the first caller gets the upstream's own answer";
    EXPECT_EQ(upstream_->requests(), ++expected_requests);
    const auto retry = ask(asking_for(row));
    switch (meaning) {
      case stored:
        EXPECT_EQ(first.get("Idempotency-Outcome"), "stored");
        EXPECT_TRUE(first.get("Idempotency-Expires"));
        EXPECT_TRUE(replays(first, retry));
        break;
      case released:
        EXPECT_EQ(first.get("Idempotency-Outcome"), "released");
        EXPECT_FALSE(first.get("Idempotency-Expires"));
        EXPECT_EQ(retry.status, row.status);
        EXPECT_FALSE(retry.get("Idempotent-Replayed"));
        EXPECT_NE(retry.body, first.body) << "the retry runs afresh";
        ++expected_requests;
        break;
      case unknown:
        EXPECT_EQ(first.get("Idempotency-Outcome"), "unknown");
        EXPECT_TRUE(is_problem(retry, 409, "outcome_unknown"));
        EXPECT_EQ(json_text(retry.body, "state"), "unknown");
        break;
    }
    EXPECT_EQ(upstream_->requests(), expected_requests);
  }
}

TEST_P(Presets, S13_another_request_under_the_same_key_is_refused_in_the_way_its_clients_know) {
  ASSERT_EQ(ask(asking_for(rows[0])).status, 200);
  auto other = asking_for(rows[0]);
  other.body = R"({"amount":9999})";
  const bool is_stripe = std::string_view(GetParam()) == "stripe";
  const auto refused = ask(other);
  if (is_stripe) {
    EXPECT_EQ(refused.status, 400);
    const auto body = parse_json(refused.body).value_or(Json{});
    EXPECT_EQ(body["error"]["type"].string, "idempotency_error") << refused.body;
    EXPECT_EQ(body["error"]["idem_code"].string, "key_reused");
  } else {
    EXPECT_TRUE(is_problem(refused, 422, "key_reused"));
  }
  EXPECT_EQ(upstream_->requests(), 1);
}

/// True when the list has this status, alone or in a range such as "200-399".
bool lists(const Json& ranges, int status) {
  return std::ranges::any_of(ranges.items, [&](const Json& range) {
    const auto dash = range.string.find('-');
    const int first = std::stoi(range.string);
    const int last = dash == std::string::npos ? first : std::stoi(range.string.substr(dash + 1));
    return first <= status && status <= last;
  });
}

TEST_P(Presets, S13_the_policy_document_gives_the_result_of_each_row) {
  const auto page = ask({.method = "GET", .target = "/.well-known/idempotency"});
  const auto document = parse_json(page.body).value_or(Json{});
  ASSERT_EQ(document["routes"].items.size(), 1U) << page.body;
  const Json& route = document["routes"].items[0];
  for (const auto& row : rows) {
    const Json& outcomes = route[row.retry_after ? "outcomes_with_retry_after" : "outcomes"];
    const auto first = ask(asking_for(row));
    for (const char* outcome : {"stored", "released", "unknown"}) {
      EXPECT_EQ(lists(outcomes[outcome], row.status), first.get("Idempotency-Outcome") == outcome)
          << GetParam() << ' ' << row.status << ' ' << outcome;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Presets, testing::Values("ietf", "stripe", "lenient"),
                         [](const auto& preset) { return std::string(preset.param); });

TEST_F(Scripted, S13_the_policy_document_has_all_that_a_client_needs) {
  ASSERT_NO_FATAL_FAILURE(
      start(answer_as_asked, {"--retention", "2h", "--key-header", "X-Request-Key", "--key-syntax",
                              "structured", "--require-key", "false", "--key-min-length", "16",
                              "--key-reject-pii", "--wait-max", "0s"}));
  const auto document = ask({.method = "GET", .target = "/.well-known/idempotency"});
  EXPECT_EQ(document.status, 200);
  EXPECT_EQ(document.get("Content-Type"), "application/json");
  const auto says = [&](std::string_view part) {
    EXPECT_NE(document.body.find(part), std::string::npos) << part << "\n" << document.body;
  };
  says(R"({"key_headers":["X-Request-Key"],"key_syntax":"structured","key_bytes_min":16,)"
       R"("key_bytes_max":255,"key_reject_pii":true,"key_scope":"operation",)"
       R"("key_time":"ignored","routes":[{"path":"/{rest...}","key_required":false,)"
       R"("mode":"conflict","key_reused_status":422,"retention_seconds":7200,)"
       R"("refused_after_retention_seconds":2592000,"request_body_bytes_max":1048576,)");
  says(R"("problems":"/.idem/problems/{code}","problem_types":[{)");
  EXPECT_EQ(upstream_->requests(), 0) << "our own paths are never passed on";
}

}  // namespace
}  // namespace idem::test
