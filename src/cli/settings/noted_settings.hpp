#pragma once

#include "admin/audit/noted_setting.hpp"
#include "cli/settings/gateway_flags.hpp"

#include <idem/fingerprint.hpp>

#include <vector>

namespace idem::cli {

/// The effective settings for the audit: each setting, route, destination and provider by its name.
/// `secrets` are those of the key names: the audit shows their ids, so that it tells of a rotation.
/// What is shown has no password; a change of one shows as a change of a value that looks the same.
std::vector<admin::NotedSetting> noted_settings(GatewayFlags flags, Purpose purpose,
                                                const std::vector<Secret>& secrets);

}  // namespace idem::cli
