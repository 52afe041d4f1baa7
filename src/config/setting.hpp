#pragma once

#include "config/given.hpp"
#include "config/yaml.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// A setting: its name in the file and on the command line, its shape and the slot for its value.
namespace idem::config {

struct Shape {
  enum class Kind : std::uint8_t {
    text,      ///< A string; its owner checks its form.
    word,      ///< One of `words`.
    truth,     ///< true or false.
    number,    ///< A whole number within `min` and `max`.
    duration,  ///< "30s", or 0.
    size,      ///< "64KiB".
    texts,     ///< A list of strings.
    path,      ///< A string that names a file or a folder; in a file it is relative to that file.
    paths,     ///< A list of them.
    store,     ///< A store's URL, which may contain paths.
    statuses,  ///< A map of HTTP status codes to one of `words`.
    maps,      ///< A list of maps, each with its own table of settings.
  };
  Kind kind = Kind::text;
  std::string_view words{};  ///< "a|b|c"
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

constexpr Shape one_of(std::string_view words) { return {Shape::Kind::word, words}; }
constexpr Shape number(std::uint64_t min, std::uint64_t max) {
  return {Shape::Kind::number, {}, min, max};
}
constexpr Shape statuses(std::string_view words) { return {Shape::Kind::statuses, words}; }
/// The code that parses the value checks `max`.
constexpr Shape size_up_to(std::uint64_t max) { return {Shape::Kind::size, {}, 0, max}; }
inline constexpr Shape text{Shape::Kind::text};
inline constexpr Shape truth{Shape::Kind::truth};
inline constexpr Shape duration{Shape::Kind::duration};
inline constexpr Shape size{Shape::Kind::size};
inline constexpr Shape texts{Shape::Kind::texts};
inline constexpr Shape path{Shape::Kind::path};
inline constexpr Shape paths{Shape::Kind::paths};
inline constexpr Shape store{Shape::Kind::store};
inline constexpr Shape maps{Shape::Kind::maps};

/// Whether the shape is one string, or a list of strings, of any form.
constexpr bool is_text(Shape::Kind kind) {
  return kind == Shape::Kind::text || kind == Shape::Kind::path || kind == Shape::Kind::store;
}
constexpr bool is_texts(Shape::Kind kind) {
  return kind == Shape::Kind::texts || kind == Shape::Kind::paths;
}

/// The place of a setting's value.
using Slot = std::variant<Given*, GivenList*, GivenMap*, std::vector<Node>*>;

/// What a changed value needs. By default a restart.
enum class Change : std::uint8_t { restart, live };

/// Whose setting it is: also a worker's, or without effect there, because it serves no clients.
enum class Role : std::uint8_t { gateway_and_worker, gateway };

struct Setting {
  std::string_view path;  ///< In the file: "upstream.timeout".
  std::string_view flag;  ///< "--upstream-timeout"; empty: only in the file.
  Shape shape;
  Slot slot;
  std::string_view help;
  Change change = Change::restart;
  Role role = Role::gateway_and_worker;
  bool required = false;  ///< Must be given in its map of the file.
};

/// Without effect on a worker.
inline bool is_gateways(const Setting& setting) { return setting.role == Role::gateway; }

/// Reads `map` into the slots of `table`. Unknown keys, wrong types and values of a wrong shape
/// give complaints. A setting that is not given gets the place of the nearest map in which it could
/// be.
void read_map(const Node& map, std::span<const Setting> table, Complaints& complaints);

/// Checks that a given value has its setting's shape: choices, numbers, lengths of lists, and no
/// empty text.
void check(const Setting& setting, Complaints& complaints);

/// The place where the setting is given; null: it is not, or it is a list of maps.
const Place* given_at(const Setting& setting);

/// Whether two settings have the same value, given in any place.
bool same_value(const Setting& a, const Setting& b);

/// Whether settings without a value are left out or shown as comments.
enum class Unset : std::uint8_t { left_out, shown };
/// A table's values as YAML that read_map() reads: also defaults, and given empty lists, because
/// they replace a default. Each line begins with `indent` spaces.
std::string to_yaml(std::span<const Setting> table, std::size_t indent,
                    Unset unset = Unset::left_out);

/// The same values as members of a JSON object, without its braces; what has none is left out.
std::string to_json(std::span<const Setting> table);

/// The value as YAML, in one line; empty: there is none.
std::string value_of(const Setting& setting);
/// The values that a shape allows, for people; words stand in backticks.
std::string values_of(const Shape& shape);

/// The members of a JSON Schema (2020-12) object that accepts what read_map() accepts, without
/// braces: "type", "properties", ... `of_maps` has the schemas of the items of lists of maps, by
/// their paths.
using ItemSchemas = std::map<std::string_view, std::string>;
std::string to_schema(std::span<const Setting> table, const ItemSchemas& of_maps);

/// The table for people, in Markdown: a row for each setting. `variable_of` names the variable of a
/// flag.
std::string to_markdown(std::span<const Setting> table,
                        const std::function<std::string(std::string_view flag)>& variable_of);

}  // namespace idem::config
