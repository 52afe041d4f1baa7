#pragma once

#include "config/setting.hpp"

#include <vector>

namespace idem::gateway {
struct GatewaySettings;
}

namespace idem::cli {

using config::Complaints;
using config::Given;
using config::GivenList;

/// The settings that identify and authorise a caller, as texts before parsing.
struct CallerFlags {
  Given scope{};
  Given trust_scope_header{"false"};
  GivenList trusted_proxies{};
  Given jwt_algorithm{};
  Given jwt_key_file{};
  Given jwt_jwks_file{};
  Given jwt_issuer{};
  Given jwt_audience{};
  Given jwt_leeway{"0s"};
  Given authorize_url{};
  Given authorize_ca{};
  Given authorize_timeout{"5s"};
  Given authorize_cache{"0s"};
};

/// Their rows of the settings table.
std::vector<config::Setting> settings_of(CallerFlags& flags);

/// Parses them; reads the files of keys.
void parse_caller(const CallerFlags& flags, gateway::GatewaySettings& settings,
                  Complaints& complaints);

}  // namespace idem::cli
