// JSON. The canonical form is JSON to a second reader (Boost.JSON), which finds the same values in
// it as in the text, and is its own canonical form. Texts that it accepts and we refuse have one of
// the reasons of RFC 7493. The fingerprint form differs in numbers only, and only where it says so.
// The parsed value is that of the same text, or the same refusal: it comes out as the canonical
// form.
#include "core/bytes/json_string.hpp"
#include "core/bytes/utf8.hpp"
#include "fuzz/check.hpp"
#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"
#include "json/value.hpp"
#include "support/json.hpp"

#include <idem/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <expected>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace idem::fuzz {
namespace {

using Json = test::Json;
using Kind = Json::Kind;

double number_of(const Json& value) {
  return value.kind == Kind::integer ? static_cast<double>(value.integer) : value.real;
}

/// Numbers roughly: the other reader rounds twice, and makes no number of `0e309`.
bool same_value(Json a, Json b) {
  const auto is_number = [](const Json& value) {
    return value.kind == Kind::integer || value.kind == Kind::real;
  };
  if (is_number(a) && is_number(b)) {
    const double x = number_of(a), y = number_of(b);
    if (std::isnan(x) || std::isnan(y)) return true;
    return x == y || std::fabs(x - y) <= 1e-9 * std::max(std::fabs(x), std::fabs(y)) + 1e-300;
  }
  if (a.kind != b.kind || a.boolean != b.boolean || a.string != b.string) return false;
  const auto by_name = [](const auto& x, const auto& y) { return x.first < y.first; };
  std::ranges::sort(a.members, by_name);
  std::ranges::sort(b.members, by_name);
  return std::ranges::equal(a.items, b.items, same_value) &&
         std::ranges::equal(a.members, b.members, [](const auto& x, const auto& y) {
           return x.first == y.first && same_value(x.second, y.second);
         });
}

/// True when `form` holds a number in the tagged form.
bool has_tag(std::string_view form) {
  bool in_string = false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (in_string && form[i] == '\\') {
      ++i;
    } else if (form[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && form[i] == '#') {
      return true;
    }
  }
  return false;
}

/// True when the other reader gives up on an exponent, also on that of a zero. Strings may look
/// like one, too: the little that goes unread then is no loss.
bool has_long_exponent(std::string_view text) {
  for (auto at = text.find_first_of("eE"); at != text.npos; at = text.find_first_of("eE", at)) {
    at = std::min(text.find_first_not_of("+-0", at + 1), text.size());
    if (std::min(text.find_first_not_of("0123456789", at), text.size()) - at > 8) return true;
  }
  return false;
}

/// RFC 8785 by a value: members are sorted as a whole, numbers written by what they are.
struct Canonical {
  std::string& out;

  void operator()(std::nullptr_t) const { out += "null"; }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  // Beyond 2^53 the canonical form is that of a double.
  void operator()(std::int64_t value) const { (*this)(static_cast<double>(value)); }
  void operator()(std::uint64_t value) const {
    check(value > static_cast<std::uint64_t>(INT64_MAX), "a number that fits is an int64");
    (*this)(static_cast<double>(value));
  }
  void operator()(double value) const {
    check(std::isfinite(value), "a number is finite");
    out += ecmascript_number(value);
  }
  void operator()(const std::string& value) const { append_json_string(out, value); }
  void operator()(const json::Array& items) const {
    char separator = '[';
    for (const auto& item : items) {
      out += std::exchange(separator, ',');
      std::visit(*this, item.is);
    }
    out += items.empty() ? "[]" : "]";
  }
  void operator()(const json::Object& members) const {
    std::vector<const json::Member*> sorted;
    for (const auto& member : members) sorted.push_back(&member);
    std::ranges::sort(sorted,
                      [](const auto* a, const auto* b) { return utf16_less(a->name, b->name); });
    char separator = '{';
    for (const auto* member : sorted) {
      out += std::exchange(separator, ',');
      append_json_string(out, member->name);
      out += ':';
      std::visit(*this, member->value.is);
    }
    out += members.empty() ? "{}" : "}";
  }
};

void check_value(std::string_view text, const std::expected<std::string, JsonError>& form) {
  const auto value = json::parse(text);
  check(value.has_value() == form.has_value(), "a value is parsed where a canonical form is made");
  if (value) {
    std::string written;
    std::visit(Canonical{written}, value->is);
    check(written == *form, "the value's canonical form is that of the text");
  } else {
    check(value.error().offset == form.error().offset && value.error().what == form.error().what,
          "the refusal is the same");
  }
}

void check_canonical(std::string_view text, const std::string& form) {
  const auto again = canonicalize(ExactBytes(form).view());
  check(again && *again == form, "the canonical form is its own");
  const auto spaced = canonicalize(" \n" + std::string(text) + "\t\r");
  check(spaced && *spaced == form, "white space around means nothing");
  if (has_long_exponent(text)) return;
  const auto read = test::parse_json(text);
  const auto read_form = test::parse_json(form);
  check(read.has_value(), "what is accepted is JSON");
  check(read_form.has_value(), "what is written is JSON");
  check(same_value(*read, *read_form), "the canonical form says the same");
  if (read->kind == Kind::integer || read->kind == Kind::real) {
    check(std::strtod(std::string(text).c_str(), nullptr) == std::strtod(form.c_str(), nullptr),
          "a number is the double nearest to it");
  }
}

}  // namespace

void canonical_json(std::string_view input) {
  const std::string expanded = with_runs(input);
  const ExactBytes text(expanded);
  const auto form = canonicalize(text.view());
  const auto fingerprint = fingerprint_form(text.view());
  check_value(text.view(), form);
  if (form) {
    check_canonical(text.view(), *form);
  } else {
    check(form.error().offset <= text.view().size(), "a refusal names a place in the text");
    const auto what = form.error().what;
    check(!test::parse_json(text.view()) || what == "duplicate name" ||
              what == "number overflows a double" || what == "nested too deeply",
          "what is refused is no JSON, or none that means one thing");
  }
  if (form && fingerprint) {
    check(has_tag(*fingerprint) || *fingerprint == *form, "without a tag the forms are one");
  } else if (form) {
    check(fingerprint.error().what == "exponent too long", "the exact form refuses exponents only");
  } else if (fingerprint) {
    check(form.error().what == "number overflows a double" && has_tag(*fingerprint),
          "the exact form takes more numbers only");
  }
}

}  // namespace idem::fuzz
