#include "core/fingerprint/method_override.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/percent.hpp"
#include "core/fingerprint/media_type.hpp"
#include "core/fingerprint/plain_name.hpp"
#include "core/json/place.hpp"

#include <idem/json.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace idem {
namespace {

constexpr std::string_view parameter = "_method";

bool is_token(std::string_view text) noexcept {
  static constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  const auto fits = [](char c) {
    const char lower = lower_letter(c);
    return is_digit(c) || (lower >= 'a' && lower <= 'z') || others.contains(c);
  };
  return !text.empty() && std::ranges::all_of(text, fits);
}

/// As servers decode a name or a value of a form: a broken escape stays.
std::string decoded(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) plain += decoded_at(text, i, Plus::is_blank);
  return plain;
}

/// PHP ends a name at a NUL, strips blanks before it, and reads a dot, a blank and a bracket that
/// stays open as an underscore; others strip blanks on both sides; ASP.NET ignores case.
bool is_parameter(std::string name) {
  name.resize(std::min(name.find('\0'), name.size()));
  name = std::string(trimmed(name, " \t\r\n"));
  if (MethodOverride::is_field(name)) return true;
  const bool closes = name.contains(']');
  for (char& c : name) {
    if (c == '.' || c == ' ' || (c == '[' && !closes)) c = '_';
    c = lower_letter(c);
  }
  return name == parameter;
}

/// The value of the parameter `name` of a Content-Disposition: quoted, a token, or extended (RFC
/// 8187). The first one of that name.
std::optional<std::string> name_of_part(std::string_view disposition) {
  const std::string lower = lower_case(disposition);
  for (auto at = lower.find("name"); at != lower.npos; at = lower.find("name", at + 1)) {
    const char before = at == 0 ? ';' : lower[at - 1];
    if (before != ';' && before != ' ' && before != '\t' && before != '\n') continue;  // filename
    auto from = lower.find_first_not_of(" \t\r\n", at + 4);
    if (from == lower.npos) continue;
    const bool extended = lower[from] == '*';
    if (extended) from = lower.find_first_not_of(" \t\r\n", from + 1);
    if (from == lower.npos || lower[from] != '=') continue;
    from = lower.find_first_not_of(" \t\r\n", from + 1);
    if (from == lower.npos) continue;
    std::string_view value = disposition.substr(from);
    const bool quoted = value.starts_with('"') || value.starts_with('\'');
    if (quoted) {
      const char quote = value.front();
      value.remove_prefix(1);
      value = value.substr(0, value.find(quote));
    } else {
      value = value.substr(0, value.find_first_of("; \t\r\n"));
    }
    if (extended) value.remove_prefix(std::min(value.rfind('\'') + 1, value.size()));
    std::string name;
    std::ranges::copy_if(value, std::back_inserter(name), [](char c) { return c != '\\'; });
    return decoded(name);
  }
  return std::nullopt;
}

/// Calls `visit(name, rest)` for each part whose head begins with, or holds, a line
/// Content-Disposition, until that returns false. `rest`: the body from there on. Reads leniently:
/// what some reader may find counts.
template <class Visit>
void each_named_part(std::string_view body, Visit visit) {
  constexpr std::string_view field = "content-disposition";
  while (!body.empty()) {
    const auto end = std::min(body.find('\n'), body.size());
    const auto line = body.substr(0, end);
    const bool is_it = line.size() > field.size() && (line[0] | 0x20) == 'c' &&
                       lower_case(line.substr(0, field.size())) == field;
    if (!is_it) {
      body.remove_prefix(std::min(end + 1, body.size()));
      continue;
    }
    auto last = end;  // With lines that continue it.
    while (last + 1 < body.size() && (body[last + 1] == ' ' || body[last + 1] == '\t')) {
      last = std::min(body.find('\n', last + 1), body.size());
    }
    const auto name = name_of_part(body.substr(field.size(), last - field.size()));
    body.remove_prefix(std::min(last, body.size()));
    if (name && !visit(*name, body)) return;
  }
}

std::string_view content_in(std::string_view rest) {
  rest.remove_prefix(std::min(rest.find("\n\r\n"), rest.size()));
  rest.remove_prefix(std::min<std::size_t>(3, rest.size()));
  return rest.substr(0, rest.find("\r\n--"));
}

bool is_json(std::string_view media) noexcept {
  return media == "application/json" || media.ends_with("+json");
}

/// The member of that name of an object, without quotes. One that Idem cannot read by value is no
/// method. None: there is no such member.
std::optional<std::string> json_member(std::string_view body) {
  // Most bodies have neither the name nor a letter that could be one of it.
  if (!body.contains(parameter) && !body.contains("\\u")) return std::nullopt;
  const auto form = canonicalize(body);
  if (!form) return body.contains("\"_method\"") ? std::optional(std::string()) : std::nullopt;
  const auto found = json_at(*form, "/_method");
  if (!found) return std::nullopt;
  return found->starts_with('"') ? json_plain(*found) : std::string();
}

}  // namespace

bool MethodOverride::is_field(std::string_view name) noexcept {
  static constexpr std::array<std::string_view, 3> names{"xhttpmethodoverride", "xmethodoverride",
                                                         "xhttpmethod"};
  static constexpr PlainNames all(names);
  return all.has(name);
}

void MethodOverride::add_field(std::string_view name, std::string_view value) {
  // As spelled: a server may drop one spelling and obey another.
  add(lower_case(name), value);
}

void MethodOverride::add_query(std::string_view query) { add_form(query, "?"); }

void MethodOverride::add_body(std::string_view content_type, std::string_view body) {
  const std::string media = media_type(content_type);
  if (is_json(media)) {
    if (const auto value = json_member(body)) add("json/_method", *value);
  } else if (media.empty() || media == "application/x-www-form-urlencoded") {
    add_form(body, "form/");
  } else if (media.starts_with("multipart/")) {
    // Only of such a part is the content looked for, and of none after one that has none or
    // another: a body of many parts without an end would be read as often as it has parts.
    each_named_part(body, [&](const std::string& name, std::string_view rest) {
      if (is_parameter(name)) add("form/_method", content_in(rest));
      return clear_;
    });
  }
}

void MethodOverride::add_form(std::string_view form, std::string_view kind) {
  while (!form.empty()) {
    const auto end = std::min(form.find_first_of("&;"), form.size());
    const auto pair = form.substr(0, end);
    form.remove_prefix(std::min(end + 1, form.size()));
    const auto equals = std::min(pair.find('='), pair.size());
    if (equals < parameter.size() || !is_parameter(decoded(pair.substr(0, equals)))) continue;
    add(std::string(kind) + std::string(parameter),
        decoded(pair.substr(std::min(equals + 1, pair.size()))));
  }
}

void MethodOverride::add(std::string place, std::string_view value) {
  if (places_.empty()) {
    value_ = value;
    method_ = value;
    std::ranges::transform(method_, method_.begin(), [](char c) {
      return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
  }
  clear_ = clear_ && value == value_ && is_token(value);
  places_.insert(std::move(place));
}

std::string MethodOverride::counted(std::string_view method) const {
  std::string text(method);
  for (const auto& place : places_) text += ", " + place + ": " + value_;
  return text;
}

}  // namespace idem
