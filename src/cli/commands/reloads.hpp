#pragma once

#include "admin/setting_change.hpp"
#include "cli/settings/settings_source.hpp"

#include <idem/log.hpp>

#include <mutex>

namespace idem::cli {

/// What differs between the settings that run and those of the file, and how the last reload ended.
/// Safe from any thread, but for ended(), which is the reloading one's.
class Reloads {
 public:
  /// `source` outlives this.
  Reloads(const SettingsSource& source, GatewayFlags running)
      : source_(source), running_(std::move(running)) {}

  /// Reads the file.
  admin::SettingsDifference difference() const;
  /// For the admin API: a reload is asked for by SIGHUP.
  admin::Reloading for_admin();

  /// `now`: the settings that run from now on; null: the reload was refused.
  void ended(admin::SettingsDifference did, const GatewayFlags* now);

 private:
  const SettingsSource& source_;
  mutable std::mutex mutex_;
  GatewayFlags running_;
  admin::ReloadEnd last_;
};

/// A line for each change, before a reload applies or refuses them.
void log_changes(const LogSink& log, const admin::SettingsDifference& difference);

}  // namespace idem::cli
