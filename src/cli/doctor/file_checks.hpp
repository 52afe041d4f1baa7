#pragma once

#include "cli/doctor/finding.hpp"
#include "cli/settings/settings_source.hpp"
#include "http/tls/certificate.hpp"

#include <chrono>

/// Files that the settings name: certificates, keys, secrets.
namespace idem::cli::doctor {

using Moment = std::chrono::sys_seconds;
Moment now();

/// By its dates. `todo` of one that ends: what its owner has to do.
Finding judge_certificate(const std::string& check, const http::Certificate& certificate,
                          Moment now, const std::string& todo);

/// All certificates, keys and secrets, and whether a certificate's key fits.
Findings check_files(const ReadSettings& read);

}  // namespace idem::cli::doctor
