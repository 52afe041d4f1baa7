#include "core/fingerprint/form_fields.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/percent.hpp"
#include "core/bytes/utf8.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

namespace idem {
namespace {

struct FormField {
  std::string_view text;  // as spelled: name, and value with its equals sign
  std::string name;       // for sorting
  std::string place{};    // the path of a name with several parts; else empty
};

bool is_well_formed(std::string_view body) noexcept {
  for (std::size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (c <= ' ' || c >= 0x7F || c == ';') return false;
    if (c == '%' && escaped_byte(body, i) < 0) return false;
  }
  return true;
}

// In lower case. None: it holds a control character, where some servers end a name, or a byte whose
// case differs between servers.
std::optional<std::string> decoded_name(std::string_view spelled) {
  std::string name;
  name.reserve(spelled.size());
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    const char c = decoded_at(spelled, i, Plus::is_blank);
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) {
      return std::nullopt;
    }
    name += lower_letter(c);
  }
  return name;
}

bool is_bracket(char c) noexcept { return c == '[' || c == ']'; }

// PHP strips blanks in front of a name and changes `a[b`, Rack reads `[a]` as `a`, others trim: so
// Idem cannot know which of these names are the same.
bool is_changed_by_some_servers(std::string_view name) noexcept {
  if (name.starts_with(' ') || name.ends_with(' ') || name.starts_with('[')) return true;
  bool open = false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == ' ' && (is_bracket(name[i - 1]) || is_bracket(name[i + 1]))) return true;
    if (c == ']' && !open) return true;
    if (is_bracket(c)) open = c == '[';
  }
  return open;
}

// `a.b`, `a[b]`: the parts with a newline before each, which no name has; numbers without leading
// zeros, as servers parse them. Empty for a name of one part.
std::string place_of(std::string_view name) {
  std::string place;
  if (name.find_first_of(".[") == name.npos) return place;
  for (std::size_t at = 0; at < name.size();) {
    const auto end = std::min(name.find_first_of(".[]", at), name.size());
    std::string_view part = name.substr(at, end - at);
    const bool number = part.find_first_not_of("0123456789") == part.npos;
    while (number && part.size() > 1 && part.front() == '0') part.remove_prefix(1);
    place += '\n';
    place += part;
    at = end + 1;
    // "]." and "][" are one step.
    const bool closed = end < name.size() && name[end] == ']' && at < name.size();
    if (closed && (name[at] == '.' || name[at] == '[')) ++at;
  }
  return place;
}

std::string sorting_name(std::string name) {
  std::ranges::replace_if(name, [](char c) { return c == '.' || c == ' '; }, '_');
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
    auto name = decoded_name(text.substr(0, text.find('=')));
    if (!name || is_changed_by_some_servers(*name)) return std::nullopt;
    auto place = place_of(*name);
    fields.push_back({text, sorting_name(std::move(*name)), std::move(place)});
    if (end == body.size()) return fields;
    body.remove_prefix(end + 1);
  }
}

// Two names that sort apart and that some servers read as one place.
bool has_two_names_for_a_place(const std::vector<FormField>& fields) {
  std::vector<const FormField*> parted;
  for (const FormField& field : fields) {
    if (!field.place.empty()) parted.push_back(&field);
  }
  std::ranges::sort(parted, {}, [](const FormField* f) { return std::tie(f->place, f->name); });
  const auto twins = [](const FormField* a, const FormField* b) {
    return a->place == b->place && a->name != b->name;
  };
  return std::ranges::adjacent_find(parted, twins) != parted.end();
}

std::string_view base_of(std::string_view name) noexcept { return name.substr(0, name.find('[')); }

// `base[a][b]`: brackets that are not empty, and nothing between or behind them.
bool is_plain_path(std::string_view brackets) noexcept {
  while (!brackets.empty()) {
    const auto end = brackets.find(']');
    if (brackets.front() != '[' || end == brackets.npos || end == 1) return false;
    if (brackets.substr(1, end - 1).find('[') != brackets.npos) return false;
    brackets.remove_prefix(end + 1);
  }
  return true;
}

// `names` have one base and are sorted. A name inside another comes right behind it, or behind
// others that are inside it.
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

// One spelling for `a.b`, `a[b]`, `A_b`, and for `a[1]` and `a[01]`.
void append_loose_name(std::string& out, std::string_view spelled) {
  const std::size_t begin = out.size();
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    char c = lower_letter(decoded_at(spelled, i, Plus::is_blank));
    if (c == ']') continue;
    if (c == '.' || c == ' ' || c == '[') c = '_';
    if (is_digit(c) && out.ends_with("_0") && out.size() - begin >= 2) out.pop_back();
    out += c;
  }
}

// Each field as one text, in their order. An absent value is an empty one, and an empty field none.
std::vector<std::string> said_by(std::string_view fields) {
  std::vector<std::string> all;
  while (!fields.empty()) {
    const std::string_view field = take_until(fields, '&');
    if (field.empty()) continue;
    const auto equals = std::min(field.find('='), field.size());
    std::string said;
    said.reserve(field.size() + 1);
    append_loose_name(said, field.substr(0, equals));
    said += '=';
    for (std::size_t i = equals + 1; i < field.size(); ++i)
      said += decoded_at(field, i, Plus::is_blank);
    all.push_back(std::move(said));
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace

std::optional<Digest> form_fields_digest(std::string_view body) {
  auto fields = fields_of(body);
  if (!fields || has_two_names_for_a_place(*fields)) return std::nullopt;
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

std::optional<Digest> form_values_digest(std::string_view body) {
  Frames frames(body.size() * 2);
  for (const std::string& said : said_by(body)) {
    if (!is_utf8(said)) return std::nullopt;
    frames.add(said);
  }
  return sha256(frames.bytes());
}

std::string target_values(std::string_view target) {
  const auto query = std::min(target.find('?'), target.size());
  std::string values;
  for (std::size_t i = 0; i < query; ++i)
    values += decoded_at(target.substr(0, query), i, Plus::is_itself);
  if (query == target.size()) return values;
  char before = '?';
  for (const std::string& said : said_by(target.substr(query + 1))) {
    values += before;
    values += said;
    before = '&';
  }
  return values;
}

}  // namespace idem
