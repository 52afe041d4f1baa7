#include "cli/settings/noted_settings.hpp"

#include "cli/settings/route_settings.hpp"
#include "config/words.hpp"

#include <idem/open_store.hpp>

#include <algorithm>
#include <map>

namespace idem::cli {
namespace {

using admin::NotedSetting;
using config::Given;
using config::GivenList;
using config::GivenMap;

/// The value on one line; empty for a list of maps.
struct ValueText {
  std::string operator()(const Given* one) const { return one->text; }
  std::string operator()(const GivenList* list) const {
    std::string text;
    for (const Given& item : list->items) text += (text.empty() ? "" : ", ") + item.text;
    return text;
  }
  std::string operator()(const GivenMap* map) const {
    std::string text;
    for (const auto& [name, value] : map->items) {
      text += (text.empty() ? "" : ", ") + name.text + ": " + value.text;
    }
    return text;
  }
  std::string operator()(const std::vector<config::Node>*) const { return {}; }
};

/// Without the passwords of URLs in it.
std::string without_passwords(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(", ", at), text.size());
    if (!out.empty()) out += ", ";
    out += config::without_password(text.substr(at, end - at));
    at = end + 2;
  }
  return out;
}

void note(std::vector<NotedSetting>& to, std::string name, std::string value) {
  std::string without = without_passwords(value);
  to.push_back({std::move(name), std::move(value), std::move(without)});
}

/// One map of a list: its given settings on one line. Its name, or what it matches.
template <class Item>
NotedSetting note_of(Item item) {
  NotedSetting noted;
  std::string matches;
  for (const config::Setting& one : settings_of(item)) {
    if (config::given_at(one) == nullptr) continue;
    const std::string value = std::visit(ValueText(), one.slot);
    if (one.path == "name") noted.name = value;
    if (one.path.starts_with("match.")) matches += (matches.empty() ? "" : " ") + value;
    const std::string begin = (noted.value.empty() ? "" : "; ") + std::string(one.path) + "=";
    noted.value += begin + value;
    noted.shown += begin + without_passwords(value);
  }
  if (noted.name.empty()) noted.name = matches;
  return noted;
}

/// Several routes may have one name; then the later ones have a number, too.
template <class Item>
void note_items(std::vector<NotedSetting>& to, const std::string& list,
                const std::vector<Item>& items) {
  std::map<std::string, int> seen;
  for (const Item& item : items) {
    NotedSetting noted = note_of(item);
    const int number = ++seen[noted.name];
    if (number > 1) noted.name += " #" + std::to_string(number);
    noted.name = list + '.' + noted.name;
    to.push_back(std::move(noted));
  }
}

}  // namespace

std::vector<NotedSetting> noted_settings(GatewayFlags flags, Purpose purpose,
                                         const std::vector<Secret>& secrets) {
  std::vector<NotedSetting> noted;
  for (const config::Setting& one : settings_of(flags)) {
    if (one.shape.kind == config::Shape::Kind::maps) continue;
    if (purpose == Purpose::worker && config::is_gateways(one)) continue;
    std::string value = std::visit(ValueText(), one.slot);
    if (one.shape.kind == config::Shape::Kind::store) {
      noted.push_back({std::string(one.path), value, shown_store_url(value)});
    } else {
      note(noted, std::string(one.path), std::move(value));
    }
  }
  std::string ids;
  for (const Secret& secret : secrets) ids += (ids.empty() ? "" : ", ") + secret_id(secret);
  note(noted, "key.secret_files: ids of the secrets", ids);
  Complaints ignored;
  note_items(noted, "routes", read_routes(flags.routes, ignored));
  note_items(noted, "destinations", read_destinations(flags.destinations, ignored));
  note_items(noted, "providers", read_providers(flags.providers, ignored));
  return noted;
}

}  // namespace idem::cli
