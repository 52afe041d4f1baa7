#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace idem::admin {

/// A setting as it applies, and where its value comes from.
struct EffectiveSetting {
  std::string name;    ///< As in an entry of `routes`; a quota's as in the whole file.
  std::string value;   ///< As YAML; empty: there is none.
  std::string origin;  ///< "route", "defaults", "settings" or "built in".
  std::string place;   ///< "FILE:LINE:COLUMN", a flag or a variable; empty: built in.
  std::string help;
};

/// What complete answers with these statuses mean for the record.
struct StatusMeaning {
  int first = 0;
  int last = 0;
  std::string_view outcome;  ///< "stored", "released" or "unknown".
  std::string origin;        ///< "route", "preset NAME" or "built in".
};

struct RoutePolicy {
  std::string label;                 ///< Its name, or else its path.
  std::vector<std::string> methods;  ///< Empty: all.
  std::string path;
  bool in_shadow = false;
  std::vector<EffectiveSetting> settings;
  std::vector<StatusMeaning> answers;
  std::vector<StatusMeaning> answers_with_retry_after;
};

/// What applies now.
struct RoutePolicies {
  std::vector<RoutePolicy> routes;  ///< The first that matches a request counts.
  std::vector<EffectiveSetting> quotas;
};

}  // namespace idem::admin
