#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace idem::admin {

/// A setting that the file has otherwise than the process that runs.
struct SettingChange {
  std::string name;    ///< "defaults.lease", "routes.NAME.retention", or "routes.NAME" itself.
  std::string before;  ///< As YAML, without passwords; empty: not given.
  std::string after;
  bool needs_restart = false;
  std::string records;  ///< A sentence: what it does to records. Empty: nothing.
};

/// The settings in the file against those that run.
struct SettingsDifference {
  std::vector<SettingChange> changes{};
  /// Why a reload would be refused as a whole; empty: only the store may refuse it, because of
  /// records that it would hide.
  std::string refused{};
};

/// A reload that was carried out or refused.
struct ReloadEnd {
  std::uint64_t number = 0;  ///< Of this process's reloads, from 1; 0: there was none.
  SettingsDifference did{};
};

/// How the admin API sees and asks for reloads; empty: this process has none.
struct Reloading {
  /// Reads the file. Blocks; safe from any thread.
  std::function<SettingsDifference()> difference{};
  /// Asks the process to reload, and returns at once. Safe from any thread.
  std::function<void()> ask{};
  /// The last one. Safe from any thread.
  std::function<ReloadEnd()> last{};
};

}  // namespace idem::admin
