#include "core/fingerprint/media_type.hpp"

#include "core/bytes/ascii.hpp"

#include <algorithm>

namespace idem {
namespace {

bool is_token_character(char c) noexcept {
  static constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         others.find(c) != others.npos;
}

void skip_blanks(std::string_view& text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
}

std::string_view take_token(std::string_view& text) noexcept {
  const auto end = std::ranges::find_if_not(text, is_token_character);
  const std::string_view token = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(token.size());
  return token;
}

// Behind the opening quote. False: it has no end.
bool take_quoted(std::string_view& text, std::string& value) {
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '"') return true;
    if (c != '\\') {
      value += c;
      continue;
    }
    if (text.empty()) return false;
    value += text.front();
    text.remove_prefix(1);
  }
  return false;
}

}  // namespace

std::string media_type(std::string_view content_type) {
  return lower_case(trimmed(content_type.substr(0, content_type.find(';'))));
}

std::optional<std::vector<MediaParameter>> media_parameters(std::string_view content_type) {
  std::vector<MediaParameter> parameters;
  std::string_view rest =
      content_type.substr(std::min(content_type.find(';'), content_type.size()));
  while (!rest.empty()) {
    if (rest.front() != ';') return std::nullopt;
    rest.remove_prefix(1);
    skip_blanks(rest);
    if (rest.empty() || rest.front() == ';') continue;  // The grammar allows an empty one.
    MediaParameter parameter{lower_case(take_token(rest)), {}};
    if (parameter.name.empty() || rest.empty() || rest.front() != '=') return std::nullopt;
    rest.remove_prefix(1);
    if (!rest.empty() && rest.front() == '"') {
      rest.remove_prefix(1);
      if (!take_quoted(rest, parameter.value)) return std::nullopt;
    } else {
      parameter.value = take_token(rest);
      if (parameter.value.empty()) return std::nullopt;
    }
    skip_blanks(rest);
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

}  // namespace idem
