#include "core/form_fields.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace idem {
namespace {

struct FormField {
  std::string_view text;  // as spelled: name, and value with its equals sign
  std::string name;       // what it is sorted by
};

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_well_formed(std::string_view body) noexcept {
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (c <= ' ' || c >= 0x7F || c == ';') return false;
    if (c != '%') continue;
    if (i + 2 >= body.size() || hex_digit(body[i + 1]) < 0 || hex_digit(body[i + 2]) < 0) {
      return false;
    }
  }
  return true;
}

// None: it holds a control character, where some servers end a name.
std::optional<std::string> sorting_name(std::string_view spelled) {
  std::string name;
  name.reserve(spelled.size());
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    char c = spelled[i];
    if (c == '%') {
      c = static_cast<char>(hex_digit(spelled[i + 1]) * 16 + hex_digit(spelled[i + 2]));
      i += 2;
    } else if (c == '+') {
      c = ' ';
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return std::nullopt;
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    name += c == '.' || c == ' ' ? '_' : c;
  }
  return name;
}

std::optional<std::vector<FormField>> fields_of(std::string_view body) {
  if (!is_well_formed(body)) return std::nullopt;
  const auto count = static_cast<std::size_t>(std::ranges::count(body, '&')) + 1;
  if (count > limits::form_fields_max) return std::nullopt;
  std::vector<FormField> fields;
  fields.reserve(count);
  for (;;) {
    const auto end = std::min(body.find('&'), body.size());
    const std::string_view text = body.substr(0, end);
    auto name = sorting_name(text.substr(0, text.find('=')));
    if (!name) return std::nullopt;
    fields.push_back({text, std::move(*name)});
    if (end == body.size()) return fields;
    body.remove_prefix(end + 1);
  }
}

std::string_view base_of(std::string_view name) noexcept { return name.substr(0, name.find('[')); }

// `base[a][b]`: brackets that hold something, one behind the other, and nothing else.
bool is_plain_path(std::string_view brackets) noexcept {
  while (!brackets.empty()) {
    const auto end = brackets.find(']');
    if (brackets.front() != '[' || end == brackets.npos || end == 1) return false;
    if (brackets.substr(1, end - 1).find('[') != brackets.npos) return false;
    brackets.remove_prefix(end + 1);
  }
  return true;
}

// `names` have one base and are sorted. A name that lies inside another comes right behind it, or
// behind others that do.
bool order_matters(std::span<const FormField> names) noexcept {
  if (names.front().name == names.back().name) return false;
  const std::size_t base = base_of(names.front().name).size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = names[i].name;
    if (!is_plain_path(name.substr(base))) return true;
    if (i == 0 || name == names[i - 1].name || !name.starts_with(names[i - 1].name)) continue;
    if (name[names[i - 1].name.size()] == '[') return true;
  }
  return false;
}

}  // namespace

std::optional<Digest> form_fields_digest(std::string_view body) {
  auto fields = fields_of(body);
  if (!fields) return std::nullopt;
  const auto by_base = [](const FormField& a, const FormField& b) {
    return base_of(a.name) < base_of(b.name);
  };
  std::ranges::stable_sort(*fields, by_base);
  const auto end = fields->end();
  for (auto first = fields->begin(); first != end;) {
    const auto last = std::upper_bound(first, end, *first, by_base);
    std::vector<FormField> sorted(first, last);
    std::ranges::stable_sort(sorted, {}, &FormField::name);
    if (!order_matters(sorted)) std::ranges::move(sorted, first);
    first = last;
  }

  FramedDigest digest;
  digest.add_number(fields->size());
  for (const FormField& field : *fields) digest.add(field.text);
  return digest.finish();
}

}  // namespace idem
