#include "cli/settings/methods.hpp"
#include "cli/settings/parse.hpp"
#include "config/words.hpp"
#include "core/json/place.hpp"
#include "core/naming/shadow_names.hpp"
#include "http/head.hpp"
#include "workers/reconciler.hpp"

#include <algorithm>
#include <charconv>
#include <map>

namespace idem::cli {
namespace {

using config::shown;
using gateway::Route;

std::string length_of(std::size_t bytes) { return std::to_string(bytes) + " bytes"; }

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

/// Operations without a name are METHOD and path: a name that looks like one could collide.
bool looks_like_request(std::string_view name) { return name.find(" /") != std::string_view::npos; }

void parse_name(const RouteGiven& given, Route& out, Complaints& complaints) {
  const auto& name = given.one("name");
  if (!name.text.empty()) {
    if (name.text.size() > limits::route_name_bytes_max) {
      complaints.add(name.place, "a name has 1 to " + length_of(limits::route_name_bytes_max));
    } else if (!is_printable(name.text) || name.text.front() == ' ' || name.text.back() == ' ') {
      complaints.add(name.place, shown(name.text) +
                                     " is no name; write printable ASCII, without "
                                     "spaces around it");
    } else if (looks_like_request(name.text)) {
      complaints.add(name.place, shown(name.text) +
                                     " looks like a method and path, the operation of routes "
                                     "without a name; write another name");
    }
    if (is_shadow_operation(name.text)) {
      complaints.add(name.place, shown(name.text) +
                                     " begins as the records of shadow routes do; write another "
                                     "name");
    }
    out.name = name.text;
  }
  // Longer than a name: a former operation may be METHOD and path.
  constexpr auto former_max = limits::route_path_bytes_max + limits::request_method_bytes_max;
  for (const auto& former : given.list("formerly").items) {
    const bool fine =
        !former.text.empty() && former.text.size() <= former_max && is_printable(former.text);
    if (!fine) {
      complaints.add(former.place, shown(former.text) +
                                       " is no former name; write a name, or a method and path "
                                       "such as POST /v1/payments");
    } else if (former.text == name.text) {
      complaints.add(former.place, shown(former.text) + " is its present name; leave it out");
    } else if (std::ranges::find(out.formerly, former.text) != out.formerly.end()) {
      complaints.add(former.place, shown(former.text) + " is in this list twice; keep one of them");
    } else if (const auto names = FormerNames::parse({former.text}); !names) {
      complaints.add(former.place, names.error());
    }
    out.formerly.push_back(former.text);
  }
}

/// An API may have its own methods, but one that resembles a known one is a typing error, and its
/// route would never match.
bool is_misspelt_method(const std::string& method) {
  return std::ranges::find(known_methods(), method) == known_methods().end() &&
         !config::nearest(method, known_methods()).empty();
}

void parse_match(const RouteGiven& given, Route& out, Complaints& complaints) {
  for (const auto& method : given.list("match.methods").items) {
    std::string upper = method.text;
    for (char& c : upper) {
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    if (!http::is_token(method.text) || method.text.size() > limits::request_method_bytes_max) {
      complaints.add(method.place, shown(method.text) + " is no method; write one such as POST");
    } else if (upper != method.text) {
      complaints.add(method.place, shown(method.text) +
                                       " is no method, because case matters; "
                                       "write " +
                                       upper);
    } else if (is_misspelt_method(method.text)) {
      complaints.add(method.place, shown(method.text) + " is no method of HTTP" +
                                       config::did_you_mean(method.text, known_methods()));
    } else if (std::ranges::find(out.methods, method.text) != out.methods.end()) {
      complaints.add(method.place, shown(method.text) + " is in this list twice; keep one of them");
    }
    out.methods.push_back(method.text);
  }
  if (given.list("match.methods").given && given.list("match.methods").items.empty()) {
    complaints.add(given.list("match.methods").place,
                   "an empty list matches nothing; leave methods out for all "
                   "methods");
  }
  if (given.one("match.path").text.empty()) return;
  if (given.one("match.path").text.size() > limits::route_path_bytes_max) {
    complaints.add(given.one("match.path").place,
                   "a path has at most " + length_of(limits::route_path_bytes_max));
    return;
  }
  auto pattern = gateway::PathPattern::parse(given.one("match.path").text);
  if (pattern) {
    out.path = std::move(*pattern);
  } else {
    complaints.add(given.one("match.path").place, pattern.error());
  }
}

void parse_answers(const RouteGiven& given, Route& out, Complaints& complaints) {
  static const std::map<std::string, StatusRule> rules{{"store", StatusRule::store},
                                                       {"release", StatusRule::release},
                                                       {"unknown", StatusRule::unknown}};
  for (const auto& [status, word] : given.map("statuses").items) {
    int code = 0;
    const char* const end = status.text.data() + status.text.size();
    const auto [rest, error] = std::from_chars(status.text.data(), end, code);
    // Exactly three digits: no code has two spellings.
    const bool three = status.text.size() == 3 && error == std::errc{} && rest == end;
    if (!three || code < 200 || code > 599) {
      complaints.add(status.place, shown(status.text) +
                                       " is no status of a final answer; write one from 200 to "
                                       "599");
      continue;
    }
    const auto rule = rules.find(word.text);
    if (rule != rules.end()) out.answers.statuses[code] = rule->second;
  }
  out.answers.errors_rolled_back = given.one("errors").text == "rolled_back";
}

void parse_pointers(const GivenList& given, std::vector<std::string>& out, Complaints& complaints) {
  for (const auto& pointer : given.items) {
    if (pointer.text.empty() || !is_json_pointer(pointer.text)) {
      complaints.add(pointer.place, shown(pointer.text) +
                                        " is no JSON Pointer (RFC 6901); write one such as "
                                        "/metadata/client_time, with ~0 for ~ and ~1 for /");
    } else if (std::ranges::find(out, pointer.text) != out.end()) {
      complaints.add(pointer.place, shown(pointer.text) +
                                        " is in this list twice; keep one of "
                                        "them");
    }
    out.push_back(pointer.text);
  }
}

void parse_codings(const GivenList& given, std::vector<Coding>& out, Complaints& complaints) {
  for (const auto& name : given.items) {
    // By the one name that a client may send in another case.
    const auto coding = name.text == "x-gzip" ? std::nullopt : coding_of(name.text);
    if (!coding) {
      complaints.add(name.place,
                     shown(name.text) + " cannot be decoded; write gzip, deflate or br");
    } else if (std::ranges::find(out, *coding) != out.end()) {
      complaints.add(name.place, shown(name.text) + " is in this list twice; keep one of them");
    } else {
      out.push_back(*coding);
    }
  }
}

void parse_fingerprint(const RouteGiven& given, Route& out, Complaints& complaints) {
  parse_pointers(given.list("fingerprint.include"), out.fingerprint.include, complaints);
  parse_pointers(given.list("fingerprint.exclude"), out.fingerprint.exclude, complaints);
  if (given.list("fingerprint.include").given && given.list("fingerprint.include").items.empty()) {
    complaints.add(given.list("fingerprint.include").place,
                   "an empty list would make all bodies equal; leave include out for the "
                   "whole body");
  }
  parse_field_names(given.list("fingerprint.headers"), out.fingerprint.headers, complaints);
  parse_codings(given.list("fingerprint.decode"), out.decode, complaints);
}

void parse_lease_policy(const RouteGiven& given, Route& out, Complaints& complaints) {
  const auto& policy = given.one("lease_policy");
  if (policy.text == "resume") {
    complaints.add(policy.place,
                   "resume needs phases, which only the library has; write unknown "
                   "or rerun");
  }
  if (policy.text != "rerun") return;
  if (!is_true(given.one("repeating_is_safe"))) {
    complaints.add(policy.place,
                   "rerun lets the work run twice; write repeating_is_safe: true "
                   "too if that does no harm");
    return;
  }
  out.lease_policy = LeasePolicy::rerun;
  if (out.ever_async()) {
    complaints.add(
        policy.place,
        "rerun is for requests that a client sends again; a stored request that is "
        "interrupted becomes unknown. Write unknown, or leave out mode async and respond_async");
  }
}

std::string where(const RouteGiven& route) {
  return "the route in line " + std::to_string(route.place.line);
}

/// Finds names of two routes, and routes that an earlier one hides.
void compare_routes(const std::vector<RouteGiven>& given, const std::vector<Route>& routes,
                    Complaints& complaints) {
  std::map<std::string_view, std::size_t> names;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    const auto& route = routes[i];
    if (!route.name.empty()) {
      const auto [first, added] = names.emplace(route.name, i);
      if (!added) {
        complaints.add(given[i].one("name").place, shown(route.name) + " is the name of " +
                                                       where(given[first->second]) +
                                                       " too; write another one");
      }
    }
    if (route.path.text().empty()) continue;
    for (std::size_t j = 0; j < i; ++j) {
      if (routes[j].path.text().empty() || !routes[j].covers(route)) continue;
      complaints.add(given[i].one("match.path").place,
                     "this route is never reached, because " + where(given[j]) +
                         " matches all its requests; write it further up");
      break;
    }
  }
  for (std::size_t i = 0; i < routes.size(); ++i) {
    for (const auto& former : given[i].list("formerly").items) {
      const auto now = names.find(former.text);
      if (now == names.end() || now->second == i) continue;
      complaints.add(former.place, shown(former.text) + " is the name of " +
                                       where(given[now->second]) +
                                       " now; its records would count as those of this route");
    }
  }
}

}  // namespace

std::vector<Route> parse_routes(const std::vector<RouteGiven>& given, const Route& rest,
                                Complaints& complaints) {
  std::vector<Route> routes;
  routes.reserve(given.size());
  for (const auto& one : given) {
    auto& route = routes.emplace_back(rest);
    parse_name(one, route, complaints);
    parse_match(one, route, complaints);
    parse_route(one, route, complaints);
    parse_answers(one, route, complaints);
    parse_fingerprint(one, route, complaints);
    parse_lease_policy(one, route, complaints);
  }
  compare_routes(given, routes, complaints);
  return routes;
}

void check_worker_routes(std::vector<RouteGiven> given, Complaints& complaints) {
  for (RouteGiven& route : given) {
    for (const auto& setting : settings_of(route)) {
      if (!config::is_gateways(setting)) continue;
      const config::Place* const place = config::given_at(setting);
      if (place == nullptr) continue;
      complaints.add(*place, std::string(setting.path) +
                                 " is for routes of idem gateway; a worker's have name, formerly, "
                                 "match and reconcile");
    }
  }
}

void parse_reconcile(const std::vector<RouteGiven>& given, const Providers& providers,
                     std::vector<Route>& routes, Complaints& complaints) {
  for (std::size_t i = 0; i < routes.size(); ++i) {
    const Given& named = given[i].one("reconcile");
    if (named.text.empty()) continue;
    const auto found = providers.find(named.text);
    if (found == providers.end()) {
      complaints.add(named.place, shown(named.text) + " is no provider; write one of `providers`");
    } else if (found->second) {
      routes[i].reconcile = named.text;
      routes[i].reconcile_in = found->second->retry_first;
      routes[i].reconciles_by_key = found->second->needs_key;
    }
  }
}

}  // namespace idem::cli
