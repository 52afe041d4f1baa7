#include "check/run.hpp"

#include "core/bytes/rfc3339.hpp"

#include <idem/version.hpp>

#include <algorithm>
#include <optional>
#include <system_error>

namespace idem::check {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int confirmations_max = 3;
// Of a pass, what shows how the API was asked.
constexpr std::size_t calls_of_pass_max = 3;

bool is_chosen(std::string_view id, const std::string& one) {
  return id == one || (id.starts_with(one) && id.substr(one.size()).starts_with('.'));
}

/// What keeps a case from judging, ends it.
CaseEnd end_of(const Case& one, CaseRun& run) {
  try {
    return one.run(run);
  } catch (const RateLimited& limited) {
    return CaseRun::skip(limited.why);
  } catch (const std::system_error& error) {
    return CaseRun::skip("This machine starts no more threads: " + std::string(error.what()) + ".");
  }
}

CaseResult run_once(Api& api, const Case& one) {
  CaseRun run(api);
  CaseEnd end = end_of(one, run);
  CaseResult result{.text = &one.text,
                    .outcome = end.outcome,
                    .detail = std::move(end.detail),
                    .calls = run.calls(),
                    .times = 1,
                    .failures = 0,
                    .is_certain = end.is_certain};
  std::ranges::stable_sort(result.calls, {}, &Call::began);
  // Silence is no sign of a right API.
  if (result.outcome == Outcome::pass && !run.is_answered() && !api.is_dry()) {
    result.outcome = Outcome::skip;
    result.detail = "No request received an answer" +
                    (result.calls.empty() ? "" : ": " + result.calls.back().failure) + ".";
  }
  result.failures = result.outcome == Outcome::fail ? 1 : 0;
  if (result.outcome != Outcome::fail && result.calls.size() > calls_of_pass_max) {
    result.calls.resize(calls_of_pass_max);
  }
  result.detail = api.secrets().masked(std::move(result.detail));
  return result;
}

/// Fails a case after which the API accepts no connection for so long. True: it does.
bool survives(const Api& api, CaseResult& result, std::chrono::milliseconds silence_max) {
  if (api.is_dry()) return true;
  const auto there = api.accepts_connections(silence_max);
  if (there) return true;
  const std::string before = result.detail.empty() ? "" : " Before that: " + result.detail;
  result.outcome = Outcome::fail;
  result.failures = std::max(result.failures, 1);
  result.detail = "The API stopped accepting connections (" + there.error() + ")." + before;
  return false;
}

struct Ran {
  CaseResult result;
  bool is_api_there = true;
  std::string ended{};  ///< Why the run ends here; empty: it does not.
};

/// The case again; none: the run ended within it, which `ran` says.
std::optional<CaseResult> run_again(Api& api, const Case& one, Ran& ran) {
  try {
    return run_once(api, one);
  } catch (const RunEnded& ended) {
    ran.ended = ended.why;
    return std::nullopt;
  }
}

Ran run_case(Api& api, const Case& one, std::chrono::milliseconds silence_max) {
  Ran ran{.result = run_once(api, one)};
  CaseResult& result = ran.result;
  ran.is_api_there = survives(api, result, silence_max);
  if (!ran.is_api_there || result.outcome != Outcome::fail || api.is_dry()) return ran;
  Outcome last = Outcome::skip;
  for (int i = 0; i < confirmations_max && result.failures < 2 && ran.ended.empty(); ++i) {
    auto again = run_again(api, one, ran);
    if (!again) break;
    const int times = ++result.times;
    result.failures += again->failures;
    last = again->outcome;
    if (survives(api, *again, silence_max)) continue;
    again->times = times;
    again->failures = std::max(result.failures, 1);
    return {.result = std::move(*again), .is_api_there = false};
  }
  if (result.failures >= 2 || result.is_certain) return ran;
  // A fault that does not come again cannot be worked on; it should not be overlooked either.
  result.outcome = ran.ended.empty() ? last : Outcome::skip;
  result.detail = "Failed in 1 of " + std::to_string(result.times) +
                  " attempts (not confirmed): " + result.detail;
  return ran;
}

/// The cases of a run, in the order in which they run.
std::vector<std::size_t> order_of(const RunSettings& settings) {
  const auto all = all_cases();
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_wanted =
        settings.only.empty() || std::ranges::any_of(settings.only, [&](const std::string& one) {
          return is_chosen(all[i].text.id, one);
        });
    if (is_wanted) order.push_back(i);
  }
  std::mt19937_64 random(settings.seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

CaseResult not_run(const Case& one, const std::string& why) {
  return {.text = &one.text, .outcome = Outcome::skip, .detail = why, .calls = {}};
}

/// Why the run ends before its last case; empty: it does not.
std::string run_in_order(Api& api, const RunSettings& settings,
                         const std::vector<std::size_t>& order,
                         std::vector<std::optional<CaseResult>>& results) {
  const auto all = all_cases();
  try {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Case& one = all[order[i]];
      if (settings.progress) settings.progress(i + 1, order.size(), one.text.id);
      Ran ran = run_case(api, one, settings.silence_max);
      results[order[i]] = std::move(ran.result);
      if (!ran.ended.empty()) return ran.ended;
      if (ran.is_api_there || i + 1 == order.size()) continue;
      return "the API stopped accepting connections in `" + std::string(one.text.id) + "`";
    }
  } catch (const RunEnded& ended) {
    return ended.why;
  }
  return {};
}

/// Why the run ends before its first case; empty: it does not. The error: why there is nothing to
/// test.
std::expected<std::string, std::string> prepare(Api& api) {
  try {
    if (!api.is_dry()) {
      if (auto there = api.connect(); !there) {
        return std::unexpected(api.secrets().in_sentence(there.error()));
      }
      if (auto effects = api.effects(); !effects) return std::unexpected(effects.error());
    }
    if (auto usable = api.calibrate(); !usable) return std::unexpected(usable.error());
  } catch (const RunEnded& ended) {
    return ended.why;
  }
  return std::string();
}

}  // namespace

std::expected<void, std::string> are_known(const std::vector<std::string>& only) {
  for (const std::string& one : only) {
    const bool is_known = std::ranges::any_of(
        all_cases(), [&](const Case& each) { return is_chosen(each.text.id, one); });
    if (!is_known) return std::unexpected(one);
  }
  return {};
}

std::expected<Report, std::string> run_cases(Api& api, const RunSettings& settings) {
  const auto began = Clock::now();
  Report report{
      .target = api.secrets().masked(api.origin().text() + std::string(path_of(api.spec().path))),
      .config = {},
      .profile = api.spec().profile.name,
      .seed = settings.seed,
      .version = IDEM_VERSION,
      .started_at = to_rfc3339(std::chrono::floor<Millis>(std::chrono::system_clock::now())),
      .took = {},
      .requests = 0,
      .key_mark = {},
      .cases = {},
      .cases_known = all_cases().size(),
      .ended_early = {}};
  auto ended = prepare(api);
  if (!ended) return std::unexpected(ended.error());
  const auto order = order_of(settings);
  std::vector<std::optional<CaseResult>> results(all_cases().size());
  report.ended_early = ended->empty() ? run_in_order(api, settings, order, results) : *ended;
  const std::string why = "The run ended before: " + report.ended_early + ".";
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (std::ranges::find(order, i) == order.end()) continue;
    report.cases.push_back(results[i] ? std::move(*results[i]) : not_run(all_cases()[i], why));
  }
  report.requests = api.requests();
  report.key_mark = api.key_mark();
  report.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
  return report;
}

}  // namespace idem::check
