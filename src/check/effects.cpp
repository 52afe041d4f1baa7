#include "check/api.hpp"
#include "check/command.hpp"

#include "core/bytes/utf8.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace idem::check {
namespace {

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::milliseconds;

// Twenty times a second: a database may count for it.
constexpr Millis poll_interval{50};
// A number that was late once may be later the next time.
constexpr Millis settle_min{100};

std::optional<std::int64_t> whole_number(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::expected<std::string, std::string> Api::effects_text() const {
  const auto& effects = *spec_.effects;
  if (!effects.command.empty()) {
    auto printed = run_command(effects.command, spec_.timeout, Output::collected);
    if (!printed) end_if_interrupted();
    return printed;
  }
  auto got = fetch(effects.url, effects.headers, spec_.timeout, manners_.insecure);
  if (!got) return std::unexpected("`effects.url` does not answer: " + got.error());
  return got;
}

std::expected<std::int64_t, std::string> Api::effects_now() const {
  if (!spec_.effects || is_dry()) return 0;
  const auto text = effects_text();
  if (!text) return std::unexpected(secrets_.in_sentence(text.error()));
  std::string number = *text;
  const auto shown = [this](const std::string& what) { return secrets_.in_sentence(what); };
  if (spec_.effects->pointer) {
    if (!check_json(*text)) {
      return std::unexpected("the answer of `effects` is not JSON: " + shown(*text));
    }
    const auto found = spec_.effects->pointer->find(*text);
    const auto scalar = found ? scalar_of(*found) : std::nullopt;
    if (!scalar) return std::unexpected("the answer of `effects` has no value at its pointer");
    number = *scalar;
  }
  const auto whole = whole_number(number);
  if (!whole) {
    return std::unexpected("the answer of `effects` is not a whole number: " + shown(number));
  }
  return *whole;
}

Millis Api::settle() const {
  if (!spec_.effects) return Millis(0);
  if (spec_.effects->settle) return *spec_.effects->settle;
  return lag_ == Millis(0) ? Millis(0) : std::max(2 * lag_, settle_min);
}

bool Api::has_exact_effects() const { return spec_.effects && settle() == Millis(0); }

void Api::note_end(bool is_answered) {
  last_end_ = Clock::now();
  if (!is_answered) last_left_ = Clock::now();
}

// A number that is late has counted everything once it stood still for longer than it is late,
// since its last change and since the last request ended.
std::expected<std::int64_t, std::string> Api::effects() {
  if (!spec_.effects || is_dry()) return 0;
  if (!spec_.effects->url.empty()) take_turn();
  const auto until = Clock::now() + spec_.timeout + settle();
  for (;;) {
    const auto number = effects_now();
    if (!number || settle() == Millis(0)) return number;
    const auto now = Clock::now();
    if (*number != effects_seen_) effects_changed_ = now;
    effects_seen_ = *number;
    if (now - std::max(effects_changed_, last_end_.load()) >= settle()) return number;
    if (now >= until) return std::unexpected("the number of `effects` does not stand still");
    wait_until(now + poll_interval);
  }
}

std::expected<void, std::string> Api::learn_lag(std::int64_t before) {
  const auto began = Clock::now();
  const auto most = spec_.timeout + spec_.effects->settle.value_or(Millis(0));
  for (bool is_first = true;; is_first = false) {
    const auto number = effects_now();
    if (!number) return std::unexpected(number.error());
    const auto now = Clock::now();
    if (*number > before) {
      if (!is_first) lag_ = std::max(lag_, std::chrono::ceil<Millis>(now - began));
      return {};
    }
    if (now - began >= most) {
      return std::unexpected(
          "the API accepted a request, and the number of `effects` did not "
          "change within " +
          std::to_string(most.count()) +
          " ms: does it count executions? If it is later, set `effects.settle`");
    }
    wait_until(now + poll_interval);
  }
}

}  // namespace idem::check
