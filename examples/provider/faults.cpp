#include "faults.hpp"

#include <charconv>

namespace provider {
namespace {

template <class Number>
bool read_fault(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc{} && end == text.data() + text.size();
}

bool read_delay(std::string_view text, std::chrono::milliseconds& into) {
  long count = 0;
  if (!read_fault(text, count)) return false;
  into = std::chrono::milliseconds(count);
  return true;
}

bool apply_word(Faults& faults, std::string_view word) {
  if (word == "drop-before") return faults.drop_before = true;
  if (word == "500-before") return (faults.refuse = 500) != 0;
  if (word == "500-after") return (faults.status = 500) != 0;
  if (word == "interim") return faults.interim = true;
  if (word == "close") return faults.close = true;
  if (word == "lose-webhook") return faults.lose_webhook = true;
  if (word == "repeat-webhook") return faults.repeat_webhook = true;
  if (word == "early-webhook") return faults.early_webhook = true;
  const std::pair<std::string_view, Wire> wires[] = {
      {"drop-after", Wire::dropped}, {"truncate", Wire::truncated},
      {"chunked", Wire::chunked},    {"truncate-chunked", Wire::truncated_chunked},
      {"garbage", Wire::garbage},    {"until-close", Wire::until_close}};
  for (const auto& [name, wire] : wires) {
    if (word == name) return faults.wire = wire, true;
  }
  return false;
}

bool apply_setting(Faults& faults, std::string_view name, std::string_view value) {
  if (name == "slow") return read_delay(value, faults.slow);
  if (name == "slow-after") return read_delay(value, faults.slow_after);
  if (name == "late-webhook") return read_delay(value, faults.late_webhook);
  if (name == "status") return read_fault(value, faults.status);
  if (name == "refuse") return read_fault(value, faults.refuse);
  if (name == "size") return read_fault(value, faults.size.emplace());
  if (name == "hold") return faults.hold = value, true;
  if (name == "gate-before") return faults.gate_before = value, true;
  if (name == "outcome") return faults.headers.emplace_back("Idem-Outcome", value), true;
  if (name != "header") return false;
  const auto colon = value.find(':');
  if (colon == value.npos) return false;
  faults.headers.emplace_back(value.substr(0, colon), value.substr(colon + 1));
  return true;
}

int hex(char c) {
  int value = -1;
  std::from_chars(&c, &c + 1, value, 16);
  return value;
}

}  // namespace

std::optional<Faults> parse_faults(std::string_view list) {
  Faults faults;
  while (!list.empty()) {
    const auto comma = list.find(',');
    auto word = list.substr(0, comma);
    list = comma == list.npos ? std::string_view{} : list.substr(comma + 1);
    while (word.starts_with(' ')) word.remove_prefix(1);
    const auto equals = word.find('=');
    const bool known = equals == word.npos
                           ? apply_word(faults, word)
                           : apply_setting(faults, word.substr(0, equals), word.substr(equals + 1));
    if (!known) return std::nullopt;
  }
  return faults;
}

std::string query_value(std::string_view target, std::string_view name) {
  auto query = target.substr(std::min(target.find('?'), target.size()));
  while (!query.empty()) {
    query.remove_prefix(1);  // '?' or '&'
    const auto pair = query.substr(0, query.find('&'));
    query.remove_prefix(pair.size());
    if (!pair.starts_with(name) || pair.substr(name.size(), 1) != "=") continue;
    std::string value;
    for (std::size_t i = name.size() + 1; i < pair.size(); ++i) {
      const bool escape = pair[i] == '%' && i + 2 < pair.size();
      value += escape ? static_cast<char>(hex(pair[i + 1]) * 16 + hex(pair[i + 2])) : pair[i];
      if (escape) i += 2;
    }
    return value;
  }
  return {};
}

}  // namespace provider
