#include "check/secrets.hpp"

#include "check/replace_all.hpp"
#include "check/report/escape.hpp"
#include "core/bytes/ascii.hpp"

#include <algorithm>
#include <array>

namespace idem::check {
namespace {

constexpr std::string_view mask = "***";
// Parts of a value that are shorter are words of any text, and masking them would hide it.
constexpr std::size_t part_bytes_min = 4;
// A sentence stays one.
constexpr std::size_t sentence_bytes_max = 300;

bool has_secret_name(std::string_view name) {
  static constexpr std::array<std::string_view, 10> parts{
      "authorization", "cookie",  "token",    "secret",     "api-key",
      "apikey",        "api_key", "password", "credential", "signature"};
  const std::string small = lower_case(name);
  return std::ranges::any_of(parts, [&](std::string_view part) { return small.contains(part); });
}

/// Where the last head ends: interim answers have heads of their own.
std::size_t end_of_heads(std::string_view bytes) {
  for (std::size_t at = 0;;) {
    const auto end = bytes.find("\r\n\r\n", at);
    if (end == bytes.npos) return bytes.size();
    if (!bytes.substr(at).starts_with("HTTP/1.1 1")) return end;
    at = end + 4;
  }
}

}  // namespace

Secrets::Secrets(const Spec& spec) : key_header_(lower_case(spec.key_header)) {
  for (const std::string& value : spec.secrets) add(value);
  const auto add_fields = [&](const Fields& fields) {
    for (const auto& [name, value] : fields) add_field(name, value);
  };
  add_fields(spec.headers);
  if (spec.effects) add_fields(spec.effects->headers);
  if (spec.effects) add_query(spec.effects->url);
  for (const auto* const one : {&spec.slow, &spec.fails, &spec.refuses}) {
    if (!*one) continue;
    add_fields((*one)->headers);
    if ((*one)->query) add_query('?' + *(*one)->query);
  }
  add_query(spec.path);
  if (spec.other_path) add_query(*spec.other_path);
  if (spec.other_query) add_query('?' + *spec.other_query);
  std::ranges::stable_sort(values_,
                           [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

void Secrets::add(std::string_view value) {
  if (!value.empty() && value != mask) values_.emplace_back(value);
}

void Secrets::add_field(std::string_view name, std::string_view value) {
  if (!has_secret_name(name) || lower_case(name) == key_header_) return;
  value = trimmed(value, " ");
  // "Bearer abc": the scheme is none, and a server may repeat `abc` alone.
  const auto space = std::min(value.find(' '), value.size());
  const auto part_behind = trimmed(value.substr(space), " ");
  add(part_behind.size() >= part_bytes_min ? part_behind : value);
  if (!lower_case(name).contains("cookie")) return;
  for (std::size_t at = 0; at < value.size();) {
    const auto end = std::min(value.find(';', at), value.size());
    const auto pair = value.substr(at, end - at);
    const auto part = pair.substr(std::min(pair.find('='), pair.size() - 1) + 1);
    if (part.size() >= part_bytes_min) add(part);
    at = end + 1;
  }
}

void Secrets::add_query(std::string_view target) {
  const auto mark = target.find('?');
  if (mark == target.npos) return;
  for (std::size_t at = mark + 1; at < target.size();) {
    const auto end = std::min(target.find('&', at), target.size());
    const auto pair = target.substr(at, end - at);
    const auto equals = pair.find('=');
    if (equals != pair.npos && has_secret_name(pair.substr(0, equals))) {
      add(pair.substr(equals + 1));
    }
    at = end + 1;
  }
}

std::string Secrets::masked(std::string text) const {
  for (const std::string& value : values_) replace_all(text, value, mask);
  return text;
}

std::string Secrets::masked_answer(std::string bytes) const {
  const auto head_end = end_of_heads(bytes);
  std::string head;
  for (std::size_t at = 0; at < head_end;) {
    const auto end = std::min(bytes.find("\r\n", at), head_end);
    const std::string_view line = std::string_view(bytes).substr(at, end - at);
    const auto colon = std::min(line.find(':'), line.size());
    const auto name = line.substr(0, colon);
    std::string shown(line);
    if (colon < line.size() && has_secret_name(name) && lower_case(name) != key_header_) {
      const auto value = line.substr(colon + 1);
      const bool is_cookie = lower_case(name).contains("cookie") && value.contains('=');
      const auto from = is_cookie ? value.find('=') + 1 : 0;
      const auto rest = is_cookie ? std::min(value.find(';'), value.size()) : value.size();
      shown = std::string(name) + ':' + std::string(value.substr(0, from)) +
              (is_cookie ? "" : " ") + std::string(mask) + std::string(value.substr(rest));
    }
    head += (at == 0 ? "" : "\r\n") + shown;
    at = end + 2;
  }
  return masked(head + bytes.substr(head_end));
}

std::string Secrets::in_sentence(const std::string& text) const {
  const std::string all = printable(without_user(masked(text)));
  const std::string shown(beginning_of(all, sentence_bytes_max));
  return shown.size() < all.size() ? shown + "..." : all;
}

std::string without_user(std::string text) {
  for (auto at = text.find("://"); at != std::string::npos; at = text.find("://", at + 3)) {
    const auto end = std::min(text.find_first_of("/?# \t\r\n'\"", at + 3), text.size());
    const auto user = text.rfind('@', end);
    if (user != std::string::npos && user > at) text.replace(at + 3, user - at - 3, mask);
  }
  return text;
}

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

}  // namespace idem::check
