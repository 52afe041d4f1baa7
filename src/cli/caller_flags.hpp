#pragma once

#include "gateway/settings.hpp"

#include <CLI/CLI.hpp>

#include <expected>
#include <string>
#include <vector>

namespace idem::cli {

/// The texts of the flags that say who a caller is and whether it may go on, before they are
/// understood.
struct CallerFlags {
  std::string scope;
  bool trust_scope_header = false;
  std::vector<std::string> trusted_proxies;
  std::string jwt_algorithm;
  std::string jwt_key_file;
  std::string jwt_jwks_file;
  std::string jwt_issuer;
  std::string jwt_audience;
  std::string jwt_leeway = "0s";
  std::string authorize_url;
  std::string authorize_ca;
  std::string authorize_timeout = "5s";
  std::string authorize_cache = "0s";
};

void declare_caller(CLI::App& command, CallerFlags& flags);

/// Reads the files that are named. The error is a sentence that names the flag.
std::expected<void, std::string> take_caller(const CallerFlags& flags,
                                             gateway::GatewaySettings& settings);

}  // namespace idem::cli
