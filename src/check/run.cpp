#include "check/run.hpp"

#include "core/bytes/rfc3339.hpp"

#include <idem/version.hpp>

#include <algorithm>
#include <numeric>

namespace idem::check {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int confirmations_max = 3;
// Of a pass, what shows how it was asked.
constexpr std::size_t calls_of_pass_max = 3;

bool is_chosen(std::string_view id, const std::vector<std::string>& only) {
  if (only.empty()) return true;
  return std::ranges::any_of(only, [&](const std::string& one) {
    return id == one || (id.starts_with(one) && id.substr(one.size()).starts_with('.'));
  });
}

CaseResult run_once(Api& api, const Case& one) {
  CaseRun run(api);
  CaseEnd end = one.run(run);
  CaseResult result{.text = &one.text,
                    .outcome = end.outcome,
                    .detail = std::move(end.detail),
                    .calls = run.calls(),
                    .times = 1,
                    .failures = end.outcome == Outcome::fail ? 1 : 0};
  if (end.outcome != Outcome::fail && result.calls.size() > calls_of_pass_max) {
    result.calls.resize(calls_of_pass_max);
  }
  result.detail = api.masked(std::move(result.detail));
  return result;
}

CaseResult run_case(Api& api, const Case& one) {
  CaseResult result = run_once(api, one);
  if (result.outcome != Outcome::fail || api.is_dry()) return result;
  CaseResult last;
  for (int i = 0; i < confirmations_max && result.failures < 2; ++i) {
    last = run_once(api, one);
    ++result.times;
    result.failures += last.failures;
  }
  if (result.failures >= 2) return result;
  // Nobody can act on what does not come again; and nobody should overlook it.
  result.outcome = last.outcome;
  result.detail =
      "Seen once in " + std::to_string(result.times) + " runs, and not confirmed: " + result.detail;
  return result;
}

}  // namespace

std::expected<Report, std::string> run_cases(Api& api, const RunSettings& settings) {
  const auto began = Clock::now();
  Report report{
      .target = api.origin().text() + api.spec().path,
      .profile = api.spec().profile.name,
      .seed = settings.seed,
      .version = IDEM_VERSION,
      .started_at = to_rfc3339(std::chrono::floor<Millis>(std::chrono::system_clock::now())),
      .took = {},
      .requests = 0,
      .key_mark = api.key_mark(),
      .cases = {}};
  if (!api.is_dry()) {
    if (auto there = api.connect(); !there) return std::unexpected(there.error());
    if (auto effects = api.effects(); !effects) return std::unexpected(effects.error());
  }
  if (auto usable = api.calibrate(); !usable) return std::unexpected(usable.error());
  const auto all = all_cases();
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (is_chosen(all[i].text.id, settings.only)) order.push_back(i);
  }
  std::mt19937_64 random(settings.seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  std::vector<std::pair<std::size_t, CaseResult>> results;
  try {
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (settings.progress) settings.progress(i + 1, order.size(), all[order[i]].text.id);
      results.emplace_back(order[i], run_case(api, all[order[i]]));
    }
  } catch (const RunEnded& ended) {
    return std::unexpected(ended.why);
  }
  std::ranges::sort(results, {}, &std::pair<std::size_t, CaseResult>::first);
  for (auto& [at, result] : results) report.cases.push_back(std::move(result));
  report.requests = api.requests();
  report.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
  return report;
}

}  // namespace idem::check
