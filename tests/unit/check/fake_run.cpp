#include "unit/check/fake_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace idem::check {

using namespace std::chrono_literals;

Report run(FakeApi& fake, const Spec& spec, std::vector<std::string> only, Manners manners) {
  manners.per_second = 0;
  Api api(spec, Origin::parse("http://127.0.0.1:" + fake.port()).value(), std::move(manners), 1);
  auto report = run_cases(api, {.seed = 1, .only = std::move(only), .silence_max = 300ms});
  EXPECT_TRUE(report) << (report ? "" : report.error());
  return report.value_or(Report{});
}

const CaseResult& result_of(const Report& report, std::string_view id) {
  static const CaseResult none;
  const auto found =
      std::ranges::find_if(report.cases, [&](const CaseResult& one) { return one.text->id == id; });
  if (found != report.cases.end()) return *found;
  ADD_FAILURE() << "no " << id;
  return none;
}

Outcome outcome_of(const Report& report, std::string_view id) {
  return result_of(report, id).outcome;
}

}  // namespace idem::check
