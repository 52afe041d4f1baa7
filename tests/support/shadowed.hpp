#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "support/back_off.hpp"
#include "support/explained.hpp"

namespace idem::test {

/// The report of a gateway with one shadow route, once it has decided about that many requests.
inline Json shadow_report(Gateway& gateway, std::int64_t requests) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto answer =
        send_once(gateway.admin(),
                  {.method = "GET", .target = "/v1/shadow", .fields = {{"Host", gateway.admin()}}});
    EXPECT_EQ(answer.status, 200) << answer.raw;
    Json report = parse_json(answer.body).value_or(Json{});
    const auto& routes = report["routes"].items;
    const bool is_done = routes.size() == 1 && routes[0]["requests"].integer >= requests &&
                         report["under_way"].integer == 0;
    if (is_done || std::chrono::steady_clock::now() > until) {
      EXPECT_TRUE(is_done) << answer.body;
      return routes.empty() ? Json{} : routes[0];
    }
    back_off();
  }
}

/// A gateway whose routes are all in shadow.
class Shadowed : public Explained {
 protected:
  std::vector<std::string> flags() const override { return {"--enforce", "shadow"}; }
  Json report(std::int64_t requests) { return shadow_report(*gateway_, requests); }
};

}  // namespace idem::test
