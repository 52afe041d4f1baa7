// A Prefer field's value. The wait that is read of it is a number of seconds that can be counted;
// spaces around, an unknown preference before it and anything behind change nothing; said again as
// plain digits it is the same.
#include "fuzz/check.hpp"
#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"

#include "core/exchange/preferences.hpp"

#include <idem/limits.hpp>

#include <initializer_list>
#include <optional>
#include <string>

namespace idem::fuzz {
namespace {

using Seconds = std::optional<std::chrono::seconds>;

Seconds read(std::initializer_list<std::string_view> lines) {
  PreferredWait wait;
  for (const auto line : lines) {
    const ExactBytes bytes(line);
    wait.read(bytes.view());
  }
  return wait.value();
}

}  // namespace

void preferences(std::string_view input) {
  const std::string line = with_runs(input);
  const Seconds wait = read({line});
  check(read({"  " + line + ' '}) == wait, "spaces around mean nothing");
  check(read({"respond-async;a=\"b,c\", " + line}) == wait, "others before it mean nothing");
  check(read({"respond-async", line}) == wait, "lines are one list");
  check(read({"wait=\"7\", " + line}) == std::chrono::seconds(7), "the first one counts");
  if (!wait) return;
  check(wait->count() >= 0 && *wait <= limits::duration_max, "it can be counted");
  check(read({line, "wait=7"}) == wait, "a second one does not count");
  check(read({"Wait = " + std::to_string(wait->count())}) == wait, "its digits say the same");
  const WaitRule rule = wait_rule(Millis{0}, limits::wait_cap, wait);
  check(rule.time <= limits::wait_cap && (!rule.applied || *rule.applied <= *wait),
        "nobody waits longer than allowed or asked for");
}

}  // namespace idem::fuzz
