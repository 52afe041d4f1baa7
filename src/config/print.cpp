#include "config/setting.hpp"
#include "config/words.hpp"
#include "core/bytes/json_string.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::config {
namespace {

bool is_bare(const Shape& shape) {
  return shape.kind == Shape::Kind::truth || shape.kind == Shape::Kind::number;
}

}  // namespace

std::string value_of(const Setting& setting) {
  std::string out;
  if (const auto* given = std::get_if<Given*>(&setting.slot)) {
    const auto& value = (*given)->text;
    if (value.empty()) return {};
    const auto kind = setting.shape.kind;
    const bool is_length = kind == Shape::Kind::duration || kind == Shape::Kind::size;
    return is_bare(setting.shape) || (is_length && value == "0")
               ? value
               : yaml_text(without_password(value));
  }
  if (const auto* list = std::get_if<GivenList*>(&setting.slot)) {
    for (const auto& item : (*list)->items) {
      out += (out.empty() ? "[" : ", ") + yaml_text(item.text);
    }
    if (out.empty()) return (*list)->given ? "[]" : "";
    return out + "]";
  }
  if (const auto* map = std::get_if<GivenMap*>(&setting.slot)) {
    for (const auto& [key, word] : (*map)->items) {
      out += (out.empty() ? "{" : ", ") + key.text + ": " + yaml_text(word.text);
    }
    if (out.empty()) return (*map)->given ? "{}" : "";
    return out + "}";
  }
  return {};
}

namespace {

/// Whether some line is no comment.
bool has_setting(std::string_view lines) {
  for (const auto line : split(lines, '\n')) {
    const auto begin = line.find_first_not_of(' ');
    if (begin != line.npos && line[begin] != '#') return true;
  }
  return false;
}

/// The table as a tree: all parts of a path but the last are sections. Calls `leaf` with a
/// setting's last part, and `inner` once for each section, with its part and the prefix of what is
/// in it.
template <class Leaf, class Inner>
void walk(std::span<const Setting> table, std::string_view prefix, Leaf leaf, Inner inner) {
  std::string_view last;
  for (const auto& setting : table) {
    if (!setting.path.starts_with(prefix)) continue;
    const auto rest = setting.path.substr(prefix.size());
    const auto name = rest.substr(0, rest.find('.'));
    if (name == rest) {
      leaf(name, setting);
    } else if (name != last) {
      inner(name, setting.path.substr(0, prefix.size() + name.size() + 1));
    }
    last = name;
  }
}

std::string section(std::span<const Setting> table, std::string_view prefix, std::size_t indent,
                    Unset unset) {
  std::string out;
  const std::string begin(indent, ' ');
  const auto leaf = [&](std::string_view name, const Setting& setting) {
    const auto value = value_of(setting);
    if (!value.empty()) {
      out += begin + std::string(name) + ": " + value + '\n';
    } else if (unset == Unset::shown && setting.shape.kind != Shape::Kind::maps) {
      out += begin + "# " + std::string(setting.path) + " is not set\n";
    }
  };
  walk(table, prefix, leaf, [&](std::string_view name, std::string_view inner_prefix) {
    const auto inner = section(table, inner_prefix, indent + 2, unset);
    if (inner.empty()) return;
    // A section with comments only would be a map without a value.
    out += begin + (has_setting(inner) ? "" : "# ") + std::string(name) + ":\n" + inner;
  });
  return out;
}

/// The value as JSON, as value_of() has it in YAML; empty: there is none.
std::string json_value(const Setting& setting) {
  if (const auto* given = std::get_if<Given*>(&setting.slot)) {
    const auto& value = (*given)->text;
    if (value.empty()) return {};
    if (!is_bare(setting.shape)) return json_string(without_password(value));
    // JSON has no number with zeros in front.
    const auto digits = std::min(value.find_first_not_of('0'), value.size() - 1);
    return value.substr(digits);
  }
  std::string out;
  if (const auto* list = std::get_if<GivenList*>(&setting.slot)) {
    for (const auto& item : (*list)->items)
      out += (out.empty() ? "" : ",") + json_string(item.text);
    return out.empty() && !(*list)->given ? "" : "[" + out + "]";
  }
  if (const auto* map = std::get_if<GivenMap*>(&setting.slot)) {
    for (const auto& [key, word] : (*map)->items) {
      out += (out.empty() ? "" : ",") + json_string(key.text) + ":" + json_string(word.text);
    }
    return out.empty() && !(*map)->given ? "" : "{" + out + "}";
  }
  return {};
}

std::string json_members(std::span<const Setting> table, std::string_view prefix) {
  std::string out;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    out.append(out.empty() ? "" : ",").append(json_string(name)).append(":").append(value);
  };
  const auto leaf = [&](std::string_view name, const Setting& setting) {
    add(name, json_value(setting));
  };
  walk(table, prefix, leaf, [&](std::string_view name, std::string_view inner_prefix) {
    const auto inner = json_members(table, inner_prefix);
    if (!inner.empty()) add(name, "{" + inner + "}");
  });
  return out;
}

std::string enumeration(std::string_view words) {
  std::string out;
  for (const auto word : split(words, '|')) out += (out.empty() ? "" : ",") + json_string(word);
  return "\"enum\":[" + out + "]";
}

std::string list_of(std::string_view items, std::size_t max) {
  return "\"type\":\"array\",\"maxItems\":" + std::to_string(max) + ",\"items\":{" +
         std::string(items) + "}";
}

std::string schema_of(const Shape& shape, std::string_view of_maps) {
  switch (shape.kind) {
    case Shape::Kind::text:
    case Shape::Kind::path:
    case Shape::Kind::store:
      return R"("type":"string","minLength":1)";
    case Shape::Kind::word:
      return enumeration(shape.words);
    case Shape::Kind::truth:
      return R"("type":"boolean")";
    case Shape::Kind::number:
      return "\"type\":\"integer\",\"minimum\":" + std::to_string(shape.min) +
             ",\"maximum\":" + std::to_string(shape.max);
    case Shape::Kind::duration:
      return R"("anyOf":[{"type":"string","pattern":"^([0-9]+(ms|s|m|h|d)|0)$"},{"const":0}])";
    case Shape::Kind::size:
      return R"("anyOf":[{"type":"string","pattern":"^([0-9]+(B|KiB|MiB|GiB)|0)$"},)"
             R"({"const":0}])";
    case Shape::Kind::texts:
    case Shape::Kind::paths:
      return list_of(R"("type":"string")", limits::config_entries_max);
    case Shape::Kind::statuses:
      return R"("type":"object","additionalProperties":false,"patternProperties":)"
             R"({"^[2-5][0-9][0-9]$":{)" +
             enumeration(shape.words) + "}}";
    case Shape::Kind::maps:
      return list_of(of_maps, limits::routes_max);
  }
  return {};
}

/// The member "default" with its comma; empty: there is no default.
std::string default_of(const Setting& setting) {
  const auto* const given = std::get_if<Given*>(&setting.slot);
  if (given == nullptr || (*given)->text.empty()) return {};
  const auto& text = (*given)->text;
  return "\"default\":" + (is_bare(setting.shape) ? text : json_string(text)) + ",";
}

std::string_view item_of(std::string_view path, const ItemSchemas& of_maps) {
  const auto found = of_maps.find(path);
  return found == of_maps.end() ? std::string_view() : found->second;
}

std::string object(std::span<const Setting> table, std::string_view prefix,
                   const ItemSchemas& of_maps) {
  std::string properties;
  std::string required;
  const auto add = [&](std::string_view name, bool is_required, const std::string& members) {
    properties += (properties.empty() ? "" : ",") + json_string(name) + ":{" + members + "}";
    if (is_required) required += (required.empty() ? "" : ",") + json_string(name);
  };
  const auto leaf = [&](std::string_view name, const Setting& setting) {
    add(name, setting.required,
        "\"description\":" + json_string(setting.help) + "," + default_of(setting) +
            schema_of(setting.shape, item_of(setting.path, of_maps)));
  };
  walk(table, prefix, leaf, [&](std::string_view name, std::string_view inner_prefix) {
    const bool is_required = std::ranges::any_of(table, [&](const Setting& setting) {
      return setting.required && setting.path.starts_with(inner_prefix);
    });
    add(name, is_required, object(table, inner_prefix, of_maps));
  });
  std::string out =
      R"("type":"object","additionalProperties":false,"properties":{)" + properties + "}";
  if (!required.empty()) out += ",\"required\":[" + required + "]";
  return out;
}

}  // namespace

std::string values_of(const Shape& shape) {
  switch (shape.kind) {
    case Shape::Kind::text:
      return "text";
    case Shape::Kind::path:
      return "path";
    case Shape::Kind::store:
      return "store URL";
    case Shape::Kind::word: {
      std::string words;
      for (const auto word : split(shape.words, '|')) {
        words += (words.empty() ? "`" : ", `") + std::string(word) + "`";
      }
      return words;
    }
    case Shape::Kind::truth:
      return "`true`, `false`";
    case Shape::Kind::number:
      return std::to_string(shape.min) + " to " + std::to_string(shape.max);
    case Shape::Kind::duration:
      return "duration";
    case Shape::Kind::size:
      return "size";
    case Shape::Kind::texts:
      return "list of texts";
    case Shape::Kind::paths:
      return "list of paths";
    case Shape::Kind::statuses:
      return "map of statuses to " + values_of({Shape::Kind::word, shape.words});
    case Shape::Kind::maps:
      return "list of maps, below";
  }
  return {};
}

namespace {

/// A text as a cell of a table.
std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != text.npos; at = text.find('|', at + 2)) {
    text.insert(at, 1, '\\');
  }
  return text.empty() ? "" : " " + text;
}

std::string code(std::string_view text) {
  return text.empty() ? std::string() : "`" + std::string(text) + "`";
}

}  // namespace

std::string to_markdown(std::span<const Setting> table,
                        const std::function<std::string(std::string_view flag)>& variable_of) {
  const bool has_flags =
      std::ranges::any_of(table, [](const auto& one) { return !one.flag.empty(); });
  std::string out = has_flags
                        ? "| setting | flag, variable | values | default | reload | meaning |\n"
                          "|---|---|---|---|---|---|\n"
                        : "| setting | values | default | meaning |\n|---|---|---|---|\n";
  for (const auto& setting : table) {
    out += "|" + cell(code(setting.path)) + " |";
    if (has_flags) {
      const bool has_one = !setting.flag.empty();
      out +=
          cell(has_one ? code(setting.flag) + ", " + code(variable_of(setting.flag)) : "") + " |";
    }
    out += cell(values_of(setting.shape)) + " |";
    const auto value = setting.required ? "required" : code(value_of(setting));
    out += cell(value) + " |";
    if (has_flags) out += setting.change == Change::live ? " yes |" : " |";
    out += cell(std::string(setting.help)) + " |\n";
  }
  return out;
}

std::string to_yaml(std::span<const Setting> table, std::size_t indent, Unset unset) {
  return section(table, {}, indent, unset);
}

std::string to_json(std::span<const Setting> table) { return json_members(table, {}); }

std::string to_schema(std::span<const Setting> table, const ItemSchemas& of_maps) {
  return object(table, {}, of_maps);
}

}  // namespace idem::config
