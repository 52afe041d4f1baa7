#include "support/jobs.hpp"
#include "support/back_off.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/live.hpp"

namespace idem::test {

Response admin_get(const std::string& admin, const std::string& target) {
  return send_once(admin, {.method = "GET", .target = target, .fields = {{"Host", admin}}});
}

Response admin_post(const std::string& admin, const std::string& target, std::string body) {
  return send_once(admin, {.method = "POST",
                           .target = target,
                           .fields = {{"Host", admin},
                                      {"Content-Type", "application/json"},
                                      {"Idem-Operator", "grace"}},
                           .body = std::move(body)});
}

void make_unknown(const std::string& gateway, const std::string& prefix, int count) {
  Connection connection(gateway);
  for (int i = 0; i < count; ++i) {
    const auto answer = connection.exchange(charge(fmt::format("{}-{}", prefix, i), "drop-after"));
    ASSERT_EQ(answer.status, 502) << answer.raw;
  }
}

std::string completing_all(int expected, int rate) {
  return fmt::format(
      R"({{"what":"keys.resolve","match":{{"state":"unknown"}},"expected":{},"rate":{},"order":{{)"
      R"("as":"completed","evidence":"the bank's list of today","reason":"ticket 4711",)"
      R"("response":{{"status":201,"body_b64":"Zm91bmQ="}}}}}})",
      expected, rate);
}

bool is_over(const Json& job) {
  return job["state"].string == "ended" || job["state"].string == "cancelled";
}

Json wait_for_job(const std::function<std::string()>& admin, const std::string& id,
                  const std::function<bool(const Json&)>& is_enough, std::chrono::seconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto answer = admin_get(admin(), "/v1/jobs/" + id);
    const Json job = parse_json(answer.body).value_or(Json{});
    if (answer.status == 200 && is_enough(job)) return job;
    if (std::chrono::steady_clock::now() > until) {
      ADD_FAILURE() << "the job did not come so far: " << answer.raw;
      return job;
    }
    back_off();
  }
}

std::map<std::string, SeenResult> results_of(const std::string& admin, const std::string& id) {
  std::map<std::string, SeenResult> results;
  std::string target = "/v1/jobs/" + id + "/results?limit=300";
  for (std::string next;;) {
    const auto answer = admin_get(admin, target + next);
    EXPECT_EQ(answer.status, 200) << answer.raw;
    const Json page = parse_json(answer.body).value_or(Json{});
    for (const Json& one : page["results"].items) {
      const bool is_new =
          results
              .emplace(one["ref"].string,
                       SeenResult{one["fence"].integer, one["verdict"].string, one["state"].string})
              .second;
      EXPECT_TRUE(is_new) << one["ref"].string;
    }
    if (page["next"].kind != Json::Kind::integer) return results;
    next = fmt::format("&after={}", page["next"].integer);
  }
}

EvidenceOfJob evidence_of_job(const std::string& admin, const std::string& ref,
                              const std::string& id) {
  const auto answer = admin_get(admin, "/v1/keys/" + ref);
  EXPECT_EQ(answer.status, 200) << answer.raw;
  const Json record = parse_json(answer.body).value_or(Json{});
  EvidenceOfJob seen;
  for (const Json& line : record["evidence"].items) {
    if (!line["reason"].string.contains("(job " + id + ")")) continue;
    EXPECT_EQ(line["source"].string, "operator:grace");
    ++seen.all;
    if (line["applied"].boolean) ++seen.applied;
  }
  return seen;
}

}  // namespace idem::test
