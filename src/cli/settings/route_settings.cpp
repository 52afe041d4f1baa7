#include "cli/settings/route_settings.hpp"

namespace idem::cli {

using config::Given;
using config::GivenList;
using config::GivenMap;
using config::Setting;

RouteGiven::RouteGiven() {
  for (std::size_t row = 0; row < route_settings.size(); ++row) {
    const auto kind = route_settings[row].shape.kind;
    if (config::is_texts(kind)) values_[row] = GivenList{};
    if (kind == config::Shape::Kind::statuses) values_[row] = GivenMap{};
  }
}

RouteGiven RouteGiven::initial() {
  RouteGiven all;
  for (std::size_t row = 0; row < route_settings.size(); ++row) {
    if (auto* const given = std::get_if<Given>(&all.values_[row])) {
      given->text = route_settings[row].initial;
    }
  }
  return all;
}

config::Slot RouteGiven::slot(std::size_t row) {
  return std::visit([](auto& value) { return config::Slot(&value); }, values_[row]);
}

std::vector<Setting> settings_of(RouteGiven& route) {
  std::vector<Setting> table;
  for (std::size_t row = 0; row < route_settings.size(); ++row) {
    const auto& [path, shape, help, initial, all, member, role, required] = route_settings[row];
    table.push_back({path, "", shape, route.slot(row), help, config::Change::live, role, required});
  }
  return table;
}

std::vector<Setting> settings_for_all(RouteGiven& rest, ForAllSection section) {
  std::vector<Setting> table;
  for (std::size_t row = 0; row < route_settings.size(); ++row) {
    const auto& setting = route_settings[row];
    if (setting.all.path.empty() || !setting.all.path.starts_with(section)) continue;
    table.push_back({setting.all.path, setting.all.flag, setting.shape, rest.slot(row),
                     setting.help, config::Change::live, config::Role::gateway});
  }
  return table;
}

}  // namespace idem::cli
