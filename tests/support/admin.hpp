#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "support/back_off.hpp"
#include "support/json.hpp"
#include "support/live.hpp"

namespace idem::test {

/// The value of a sample such as `idem_release_total{basis="proven"}` at this operator's address;
/// -1 without one.
double metric_at(const std::string& admin, const std::string& sample);

/// Comes back once so many requests wait there for an attempt under way. No answer to a later
/// request would say so: a store's replies may overtake each other.
void until_waiting(const std::string& admin, int count);

/// A gateway with its operator.
class Operated : public Live {
 protected:
  Response get(const std::string& target) {
    return send_once(gateway_->admin(),
                     {.method = "GET", .target = target, .fields = {{"Host", gateway_->admin()}}});
  }
  /// In the name of grace.
  Request order(const std::string& target, std::string body) const {
    Request request = nameless_order(target, std::move(body));
    request.fields.push_back({"Idem-Operator", "grace"});
    return request;
  }
  Request nameless_order(const std::string& target, std::string body) const {
    return {.method = "POST",
            .target = target,
            .fields = {{"Host", gateway_->admin()}, {"Content-Type", "application/json"}},
            .body = std::move(body)};
  }
  Response post(const std::string& target, std::string body) {
    return send_once(gateway_->admin(), order(target, std::move(body)));
  }

  /// The body of an answer of 200.
  Json read(const std::string& target) {
    const auto answer = get(target);
    EXPECT_EQ(answer.status, 200) << answer.raw;
    return parse_json(answer.body).value_or(Json{});
  }
  /// The only record in this state; its ref is empty when there is not exactly one.
  Json only(std::string_view state) {
    const Json page = read("/v1/keys?state=" + std::string(state));
    EXPECT_EQ(page["keys"].items.size(), 1U) << state;
    return page["keys"].items.size() == 1 ? page["keys"].items[0] : Json{};
  }

  double metric(const std::string& sample) { return metric_at(gateway_->admin(), sample); }
  /// The same once it is at least `least`, or as it is after `patience`: a gateway counts behind
  /// the commit that others already see.
  double metric_from(const std::string& sample, double least) {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const double value = metric(sample);
      if (value >= least || std::chrono::steady_clock::now() > until) return value;
      back_off();
    }
  }
};

/// How a program's run ended, and what it printed on both outputs.
struct Ran {
  int exit_code = -1;
  std::string output;
};
Ran run_program(const std::filesystem::path& program, std::vector<std::string> arguments,
                std::vector<std::string> environment = {});

}  // namespace idem::test

/// Skips loudly when promtool is not installed; fails under IDEM_REQUIRE_LIVE=1.
#define IDEM_NEED_PROMTOOL(tool)                                                              \
  const std::filesystem::path tool = "/usr/bin/promtool";                                     \
  if (!std::filesystem::exists(tool)) {                                                       \
    if (::idem::test::required("IDEM_REQUIRE_LIVE")) FAIL() << "promtool is not installed";   \
    GTEST_SKIP() << "promtool is not installed; it comes with the Debian package prometheus"; \
  }                                                                                           \
  static_assert(true)
