#include "support/async.hpp"

#include <chrono>

namespace idem::test {

Request looking_up(std::string target, std::string_view tenant) {
  return {.method = "GET",
          .target = std::move(target),
          .fields = {{"X-Tenant-Id", std::string(tenant)}}};
}

Json state_when_ended(std::string_view address, const Response& accepted, std::string_view tenant) {
  const auto place = accepted.get("Location");
  EXPECT_TRUE(place) << accepted.raw;
  if (!place) return {};
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < give_up) {
    const auto answer = send_once(address, with(looking_up(*place, tenant), "Prefer", "wait=5"));
    auto json = parse_json(answer.body).value_or(Json());
    const auto& state = json["state"].string;
    if (state != "pending" && state != "in_progress" && answer.status == 200) return json;
  }
  ADD_FAILURE() << *place << " has not ended";
  return {};
}

}  // namespace idem::test
