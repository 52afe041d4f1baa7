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

/// What a setting is: its name in the file and on the command line, its shape, where it goes.
namespace idem::config {

struct Shape {
  enum class Kind : std::uint8_t {
    text,      ///< A string; what it must look like is its owner's to say.
    word,      ///< One of `words`.
    truth,     ///< true or false.
    number,    ///< A whole number within `min` and `max`.
    duration,  ///< "30s", or 0.
    size,      ///< "64KiB".
    texts,     ///< A list of strings.
    path,      ///< A string that names a file or a folder; in a file it is relative to that file.
    paths,     ///< A list of them.
    store,     ///< A store's URL, in which paths may stand.
    statuses,  ///< A map of HTTP status codes to one of `words`.
    maps,      ///< A list of maps, each with a table of settings of its own.
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
inline constexpr Shape text{Shape::Kind::text};
inline constexpr Shape truth{Shape::Kind::truth};
inline constexpr Shape duration{Shape::Kind::duration};
inline constexpr Shape size{Shape::Kind::size};
inline constexpr Shape texts{Shape::Kind::texts};
inline constexpr Shape path{Shape::Kind::path};
inline constexpr Shape paths{Shape::Kind::paths};
inline constexpr Shape store{Shape::Kind::store};
inline constexpr Shape maps{Shape::Kind::maps};

/// Whether it is one string, or a list of strings, whatever they say.
constexpr bool is_text(Shape::Kind kind) {
  return kind == Shape::Kind::text || kind == Shape::Kind::path || kind == Shape::Kind::store;
}
constexpr bool is_texts(Shape::Kind kind) {
  return kind == Shape::Kind::texts || kind == Shape::Kind::paths;
}

/// Where a setting's value is kept.
using Slot = std::variant<Given*, GivenList*, GivenMap*, std::vector<Node>*>;

/// What a change needs. What says nothing is taken for the worse.
enum class Change : std::uint8_t { restart, live };

struct Setting {
  std::string_view path;  ///< In the file: "upstream.timeout".
  std::string_view flag;  ///< "--upstream-timeout"; empty: only in the file.
  Shape shape;
  Slot slot;
  std::string_view help;
  Change change = Change::restart;
  bool required = false;  ///< Must stand in its map of the file.
};

/// Takes what stands in `map` into the slots of `table`: unknown keys, wrong types and values that
/// do not have the setting's shape are complained about. The place of what is not given becomes
/// that of the nearest map in which it could stand.
void take(const Node& map, std::span<const Setting> table, Complaints& complaints);

/// Whether a value has its setting's shape, as far as words, numbers and lengths of lists go. A
/// text that was given is not empty.
void check(const Setting& setting, Complaints& complaints);

/// Whether two settings say the same, wherever they were written.
bool same_value(const Setting& a, const Setting& b);

/// A table's values as YAML, as `take` reads them: defaults too, and empty lists that were given,
/// because they take back what a default has. `indent` spaces stand before each line.
enum class Unset : std::uint8_t { left_out, shown };
/// What has no value is left out, or shown as a comment.
std::string to_yaml(std::span<const Setting> table, std::size_t indent,
                    Unset unset = Unset::left_out);

/// The members of a JSON Schema (2020-12) object that admits what `take` admits, without braces:
/// "type", "properties", ... `of_maps` has the schema of an item of each list of maps, by its path.
using ItemSchemas = std::map<std::string_view, std::string>;
std::string to_schema(std::span<const Setting> table, const ItemSchemas& of_maps);

/// The table for people, in Markdown: a row for each setting. `variable_of` names the variable of a
/// flag.
std::string to_markdown(std::span<const Setting> table,
                        const std::function<std::string(std::string_view flag)>& variable_of);

}  // namespace idem::config
