#include "config/setting.hpp"

#include "config/words.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace idem::config {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

std::string_view expected(const Shape& shape) {
  switch (shape.kind) {
    case Shape::Kind::text:
    case Shape::Kind::path:
    case Shape::Kind::store:
    case Shape::Kind::word:
      return "text";
    case Shape::Kind::truth:
      return "true or false";
    case Shape::Kind::number:
      return "a number";
    case Shape::Kind::duration:
      return "a duration such as 150ms, 30s, 5m, 24h or 30d";
    case Shape::Kind::size:
      return "a size such as 512B, 64KiB or 1MiB";
    case Shape::Kind::texts:
    case Shape::Kind::paths:
      return "a list such as [a, b]";
    case Shape::Kind::statuses:
      return "a map such as {409: store}";
    case Shape::Kind::maps:
      return "a list of maps";
  }
  return "";
}

std::string_view name_of(const Node& node) {
  if (node.kind == Node::Kind::list) return "a list";
  if (node.kind == Node::Kind::map) return "a map";
  switch (node.type) {
    case Node::Type::null:
      return "nothing";
    case Node::Type::truth:
      return "true or false without quotes";
    case Node::Type::number:
      return "a number";
    case Node::Type::text:
      return "text";
  }
  return "";
}

class MapReader {
 public:
  MapReader(std::span<const Setting> table, Complaints& complaints)
      : table_(table), complaints_(complaints) {}

  void read_map(const Node& map, const std::string& prefix) {
    if (map.kind != Node::Kind::map) {
      complaints_.add(map.place, "here is " + std::string(name_of(map)) + " where a map belongs" +
                                     "; write settings as NAME: VALUE, or leave it out");
      return;
    }
    for (const auto& setting : table_) {
      if (setting.path.starts_with(prefix)) place_of(setting) = map.place;
    }
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      read_entry(map.keys[i], map.items[i], prefix);
    }
    for (const auto& setting : table_) {
      const bool ours = setting.path.starts_with(prefix);
      if (!ours || !setting.required || is_given(setting)) continue;
      const bool deeper = setting.path.find('.', prefix.size()) != std::string_view::npos;
      const auto section = setting.path.substr(0, setting.path.find('.', prefix.size()));
      const bool is_reported = deeper && std::ranges::any_of(map.keys, [&](const Node& key) {
                                 return prefix + key.text == section;
                               });
      if (!is_reported) {
        complaints_.add(map.place, std::string(setting.path) + " is missing; write " +
                                       std::string(setting.help));
      }
    }
  }

 private:
  static Place& place_of(const Setting& setting) {
    static thread_local Place none;
    return std::visit(Overloaded{[](std::vector<Node>*) -> Place& { return none; },
                                 [](auto* slot) -> Place& { return slot->place; }},
                      setting.slot);
  }

  static bool is_given(const Setting& setting) {
    return std::visit(Overloaded{[](const std::vector<Node>* slot) { return !slot->empty(); },
                                 [](const auto* slot) { return slot->given; }},
                      setting.slot);
  }

  void read_entry(const Node& key, const Node& value, const std::string& prefix) {
    if (const auto dot = key.text.find('.'); dot != std::string::npos) {
      // It could name the same setting as a nested map, and one of the two values would be lost.
      const auto section = key.text.substr(0, dot);
      complaints_.add(key.place, shown(key.text) +
                                     " is no setting, because a name has no dot; "
                                     "write " +
                                     section + ": {" + key.text.substr(dot + 1) + ": ...}");
      return;
    }
    const std::string path = prefix + key.text;
    const auto found = std::ranges::find(table_, path, &Setting::path);
    if (found != table_.end()) return read_value(*found, value);
    const bool section = std::ranges::any_of(
        table_, [&](const Setting& setting) { return setting.path.starts_with(path + '.'); });
    if (section) return read_map(value, path + '.');
    complaints_.add(key.place, shown(key.text) + " is no setting" +
                                   (prefix.empty() ? std::string{}
                                                   : " of " + prefix.substr(0, prefix.size() - 1)) +
                                   suggestion(key.text, prefix));
  }

  // Suggests a key of the same map first, then one with that name in another map.
  std::string suggestion(std::string_view wrong, const std::string& prefix) const {
    std::vector<std::string_view> siblings;
    for (const auto& setting : table_) {
      if (!setting.path.starts_with(prefix)) continue;
      const auto rest = setting.path.substr(prefix.size());
      siblings.push_back(rest.substr(0, rest.find('.')));
    }
    auto meant = did_you_mean(wrong, siblings);
    if (!meant.empty()) return meant;
    for (const auto& setting : table_) {
      const auto name = setting.path.substr(setting.path.rfind('.') + 1);
      if (name == wrong) return "; did you mean " + std::string(setting.path) + "?";
    }
    return "; write one of " + alternatives(unique(siblings));
  }

  static std::vector<std::string_view> unique(const std::vector<std::string_view>& words) {
    std::vector<std::string_view> once;
    for (const auto word : words) {
      if (std::ranges::find(once, word) == once.end()) once.push_back(word);
    }
    return once;
  }

  void read_value(const Setting& setting, const Node& node) {
    const auto wrong = [&](const Node& at) {
      complaints_.add(at.place, std::string(setting.path) + " is " + std::string(name_of(at)) +
                                    " here; write " + std::string(expected(setting.shape)) +
                                    hint(setting.shape, at));
    };
    std::visit(Overloaded{[&](Given* slot) {
                            if (!fits(setting.shape, node)) return wrong(node);
                            *slot = {node.text, node.place, true};
                          },
                          [&](GivenList* slot) {
                            if (node.kind != Node::Kind::list) return wrong(node);
                            *slot = {.place = node.place, .given = true};
                            for (const auto& item : node.items) {
                              if (!is_text(item)) return wrong_item(setting, item);
                              slot->items.push_back({item.text, item.place, true});
                            }
                          },
                          [&](GivenMap* slot) {
                            if (node.kind != Node::Kind::map) return wrong(node);
                            *slot = {.place = node.place, .given = true};
                            for (std::size_t i = 0; i < node.keys.size(); ++i) {
                              const auto& key = node.keys[i];
                              const auto& item = node.items[i];
                              if (!is_text(item)) return wrong_item(setting, item);
                              slot->items.push_back(
                                  {{key.text, key.place, true}, {item.text, item.place, true}});
                            }
                          },
                          [&](std::vector<Node>* slot) {
                            if (node.kind != Node::Kind::list) return wrong(node);
                            *slot = node.items;
                          }},
               setting.slot);
    check(setting, complaints_);
  }

  void wrong_item(const Setting& setting, const Node& item) {
    // A partly read list is dropped, so that no further complaint follows.
    std::visit(Overloaded{[](std::vector<Node>*) {}, [](auto* slot) { *slot = {}; }}, setting.slot);
    complaints_.add(item.place, "in " + std::string(setting.path) + " here is " +
                                    std::string(name_of(item)) +
                                    "; write text, in quotes if need "
                                    "be");
  }

  static bool is_text(const Node& node) {
    return node.kind == Node::Kind::scalar && node.type == Node::Type::text;
  }

  static bool fits(const Shape& shape, const Node& node) {
    if (node.kind != Node::Kind::scalar) return false;
    switch (shape.kind) {
      case Shape::Kind::truth:
        return node.type == Node::Type::truth;
      case Shape::Kind::number:
        return node.type == Node::Type::number;
      case Shape::Kind::duration:
      case Shape::Kind::size:
        return node.type == Node::Type::text || node.type == Node::Type::number;
      case Shape::Kind::text:
      case Shape::Kind::path:
      case Shape::Kind::store:
      case Shape::Kind::texts:
      case Shape::Kind::paths:
      case Shape::Kind::statuses:
      case Shape::Kind::maps:
        return node.type == Node::Type::text;
      case Shape::Kind::word:
        // One of its words may be what YAML 1.1 reads as a truth, such as `on`.
        return node.type == Node::Type::text ||
               (node.type == Node::Type::truth &&
                std::ranges::any_of(split(shape.words, '|'), [](std::string_view word) {
                  return plain_type(word) == Node::Type::truth;
                }));
    }
    return false;
  }

  static std::string hint(const Shape& shape, const Node& node) {
    const bool unquoted = config::is_text(shape.kind) && node.kind == Node::Kind::scalar &&
                          node.type != Node::Type::null;
    return unquoted ? ", in quotes: \"" + node.text + "\"" : std::string{};
  }

  std::span<const Setting> table_;
  Complaints& complaints_;
};

void check_word(const Setting& setting, const Given& value, Complaints& complaints) {
  const auto words = split(setting.shape.words, '|');
  if (std::ranges::find(words, value.text) != words.end()) return;
  complaints.add(value.place, shown(value.text) + " is none of " + alternatives(words) +
                                  did_you_mean(value.text, words));
}

void check_given(const Setting& setting, const Given& value, Complaints& complaints) {
  static constexpr std::string_view truths[] = {"true", "false"};
  const auto& shape = setting.shape;
  if (is_text(shape.kind) && value.text.empty()) {
    // An empty value, perhaps of a template, must not switch off a protection.
    return complaints.add(value.place,
                          std::string(setting.path) + " is empty; write a value, or leave it out");
  }
  if (shape.kind == Shape::Kind::word) return check_word(setting, value, complaints);
  if (shape.kind == Shape::Kind::truth && value.text != "true" && value.text != "false") {
    complaints.add(value.place, shown(value.text) + " is neither; write " + alternatives(truths));
  }
  if (shape.kind == Shape::Kind::number) {
    std::uint64_t parsed = 0;
    const char* const end = value.text.data() + value.text.size();
    const auto [rest, error] = std::from_chars(value.text.data(), end, parsed);
    const bool whole = error == std::errc{} && rest == end;
    if (!whole || parsed < shape.min || parsed > shape.max) {
      complaints.add(value.place,
                     shown(value.text) + " is out of range; write a whole number from " +
                         std::to_string(shape.min) + " to " + std::to_string(shape.max));
    }
  }
}

std::vector<std::string> texts_of(const Slot& slot) {
  std::vector<std::string> all;
  std::visit(Overloaded{[&](const Given* given) { all.push_back(given->text); },
                        [&](const GivenList* list) {
                          for (const auto& item : list->items) all.push_back(item.text);
                        },
                        [&](const GivenMap* map) {
                          for (const auto& [key, item] : map->items) {
                            all.push_back(key.text);
                            all.push_back(item.text);
                          }
                        },
                        [](const std::vector<Node>*) {}},
             slot);
  return all;
}

}  // namespace

const Place* given_at(const Setting& setting) {
  return std::visit(Overloaded{[](const std::vector<Node>*) -> const Place* { return nullptr; },
                               [](const auto* slot) -> const Place* {
                                 return slot->given ? &slot->place : nullptr;
                               }},
                    setting.slot);
}

bool same_value(const Setting& a, const Setting& b) { return texts_of(a.slot) == texts_of(b.slot); }

void read_map(const Node& map, std::span<const Setting> table, Complaints& complaints) {
  MapReader(table, complaints).read_map(map, {});
}

void check(const Setting& setting, Complaints& complaints) {
  const auto bounded = [&](const auto& items, const Place& place) {
    if (items.size() <= limits::config_entries_max) return;
    complaints.add(place, std::string(setting.path) + " has more than " +
                              std::to_string(limits::config_entries_max) + " entries");
  };
  std::visit(Overloaded{[&](const Given* slot) {
                          if (slot->given) check_given(setting, *slot, complaints);
                        },
                        [&](const GivenList* slot) { bounded(slot->items, slot->place); },
                        [&](const GivenMap* slot) {
                          bounded(slot->items, slot->place);
                          for (const auto& [status, word] : slot->items) {
                            check_word(setting, word, complaints);
                          }
                        },
                        [](const std::vector<Node>*) {}},
             setting.slot);
}

}  // namespace idem::config
