#include "cli/settings/settings_changes.hpp"

#include "cli/command_line/words.hpp"
#include "cli/settings/route_settings.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace idem::cli {
namespace {

using admin::SettingChange;

/// What a change of a setting does to records; the first line whose begin fits counts. Paths of a
/// route and of the defaults, without "defaults.".
struct Effect {
  std::string_view begin;
  std::string_view sentence;
};

constexpr std::string_view from_now_on =
    "Counts for answers from now on. What is stored, released or unknown stays so.";
constexpr std::string_view of_its_attempt = "New attempts have it. Those that run keep theirs.";
constexpr std::string_view may_be_refused =
    "The store refuses it if it would hide a record; then nothing changes. formerly keeps the "
    "records "
    "of a renamed route.";
constexpr std::string_view with_a_record =
    "Counts for new keys. A key with a record still gets its answer.";
constexpr std::string_view not_comparable =
    "A retry of an older request may get 422 with retry: never, because its fingerprint was made "
    "by "
    "other rules. It does not run.";

constexpr std::string_view found_no_more =
    "Records that exist would not be found, and retries would run again: a start refuses it while "
    "there are records.";

constexpr std::array effects{
    Effect{"scope.from", found_no_more},
    Effect{"key.scope", found_no_more},
    Effect{"key.secret_files",
           "A start refuses to go without a secret under which records were made."},
    Effect{"store",
           "Another store knows none of the keys of this one: each retry would run again."},
    Effect{"retention", "Records that exist keep the time with which they were made."},
    Effect{"tombstone", "Records that exist keep the time with which they were made."},
    Effect{"accept_rerun_after_expiry", "Records that exist keep their tombstone."},
    Effect{"lease_policy", of_its_attempt},
    Effect{"lease", of_its_attempt},
    Effect{"timeout", of_its_attempt},
    Effect{"upstream.timeout", of_its_attempt},
    Effect{"reconcile", "A record is asked about at the provider of its own attempt."},
    Effect{"preset", from_now_on},
    Effect{"statuses", from_now_on},
    Effect{"errors", from_now_on},
    Effect{"store_body", from_now_on},
    Effect{"replay_headers", from_now_on},
    Effect{"limits.response_body", from_now_on},
    Effect{"fingerprint", not_comparable},
    Effect{
        "enforce",
        "shadow: requests with a key pass, and a retry runs again. on: the observations of shadow "
        "do not count, so the first request of each key runs."},
    Effect{"require_key", "A request without a key has no record: each of its retries runs."},
    Effect{"allow_method_override",
           "Records that exist stay. A retry that asks for another method gets 400 where it is not "
           "allowed."},
    Effect{"name", may_be_refused},
    Effect{"formerly", may_be_refused},
    Effect{"match", may_be_refused},
    Effect{"key.headers", may_be_refused},
    Effect{"key.", with_a_record},
    Effect{"quotas.", "Records that exist count, and stay; a new key beyond the quota gets 429."},
    Effect{"search.",
           "Counts for requests and answers from now on. What is indexed is found as before, and "
           "nothing is indexed later."},
    Effect{"async.secret_files",
           "A stored request that was sealed by a secret which is gone cannot run; it waits."},
};

std::string effect_on_records(std::string_view path) {
  constexpr std::string_view defaults = "defaults.";
  if (path.starts_with(defaults)) path.remove_prefix(defaults.size());
  const auto fits = [&](const Effect& effect) { return path.starts_with(effect.begin); };
  const auto found = std::ranges::find_if(effects, fits);
  return found == effects.end() ? std::string() : std::string(found->sentence);
}

using Table = std::vector<config::Setting>;

void note_changes(std::vector<SettingChange>& to, const std::string& begin, const Table& before,
                  const Table& after, bool is_live) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    const config::Setting& one = before[i];
    if (one.shape.kind == config::Shape::Kind::maps) continue;
    if (config::same_value(one, after[i])) continue;
    SettingChange change{.name = begin + std::string(one.path),
                         .before = config::value_of(one),
                         .after = config::value_of(after[i]),
                         .needs_restart = !is_live && one.change == config::Change::restart,
                         .records = {}};
    change.records = effect_on_records(one.path);
    to.push_back(std::move(change));
  }
}

/// Of a route, a destination or a provider: its name, or what it matches, and a number where an
/// earlier one is called so.
template <class Item>
std::vector<std::string> item_names(std::vector<Item>& items) {
  std::vector<std::string> names;
  std::map<std::string, int> seen;
  for (Item& item : items) {
    std::string name;
    std::string matches;
    for (const config::Setting& one : settings_of(item)) {
      const std::string value = config::given_at(one) != nullptr ? config::value_of(one) : "";
      if (one.path == "name") name = value;
      if (one.path.starts_with("match.") && !value.empty()) {
        matches += (matches.empty() ? "" : " ") + value;
      }
    }
    if (name.empty()) name = matches;
    const int number = ++seen[name];
    names.push_back(number > 1 ? name + " #" + std::to_string(number) : name);
  }
  return names;
}

template <class Item>
void compare_items(std::vector<SettingChange>& to, const std::string& list,
                   std::vector<Item> before, std::vector<Item> after, bool is_live) {
  const auto names_before = item_names(before);
  const auto names_after = item_names(after);
  std::vector<std::string> kept_before;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto same = std::ranges::find(names_after, names_before[i]);
    if (same == names_after.end()) {
      to.push_back({list + "." + names_before[i], "given", "", !is_live,
                    std::string(is_live ? may_be_refused : "")});
      continue;
    }
    kept_before.push_back(names_before[i]);
    const auto at = static_cast<std::size_t>(same - names_after.begin());
    note_changes(to, list + "." + names_before[i] + ".", settings_of(before[i]),
                 settings_of(after[at]), is_live);
  }
  std::vector<std::string> kept_after;
  for (const auto& name : names_after) {
    if (std::ranges::find(names_before, name) != names_before.end()) {
      kept_after.push_back(name);
    } else {
      std::string path = list;
      path.append(".").append(name);
      to.push_back(
          {std::move(path), "", "given", !is_live, std::string(is_live ? may_be_refused : "")});
    }
  }
  if (is_live && kept_before != kept_after) {
    to.push_back(
        {list, joined(kept_before, ", "), joined(kept_after, ", "), false,
         "The first route that matches applies: a request may belong to another one now."});
  }
}

}  // namespace

std::vector<SettingChange> changes_between(GatewayFlags running, GatewayFlags next) {
  std::vector<SettingChange> changes;
  note_changes(changes, "", settings_of(running), settings_of(next), false);
  Complaints ignored;
  compare_items(changes, "routes", read_routes(running.routes, ignored),
                read_routes(next.routes, ignored), true);
  compare_items(changes, "destinations", read_destinations(running.destinations, ignored),
                read_destinations(next.destinations, ignored), false);
  compare_items(changes, "providers", read_providers(running.providers, ignored),
                read_providers(next.providers, ignored), false);
  return changes;
}

std::vector<std::string> changed_for_restart(GatewayFlags running, GatewayFlags next) {
  std::vector<std::string> names;
  for (auto& one : changes_between(std::move(running), std::move(next))) {
    if (one.needs_restart) names.push_back(std::move(one.name));
  }
  return names;
}

}  // namespace idem::cli
