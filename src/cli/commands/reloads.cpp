#include "cli/commands/reloads.hpp"

#include "cli/settings/reload.hpp"

#include <unistd.h>
#include <csignal>

namespace idem::cli {

admin::SettingsDifference Reloads::difference() const {
  GatewayFlags running;
  {
    const std::lock_guard lock(mutex_);
    running = running_;
  }
  return read_again(source_, running).difference;
}

admin::Reloading Reloads::for_admin() {
  return {.difference = [this] { return difference(); },
          .ask = [] { ::kill(::getpid(), SIGHUP); },
          .last =
              [this] {
                const std::lock_guard lock(mutex_);
                return last_;
              }};
}

void Reloads::ended(admin::SettingsDifference did, const GatewayFlags* now) {
  const std::lock_guard lock(mutex_);
  if (now != nullptr) running_ = *now;
  last_ = {last_.number + 1, std::move(did)};
}

void log_changes(const LogSink& log, const admin::SettingsDifference& difference) {
  for (const admin::SettingChange& one : difference.changes) {
    log(LogLevel::info, "setting_differs",
        {{"name", one.name},
         {"before", one.before},
         {"after", one.after},
         {"needs", std::string(one.needs_restart ? "restart" : "reload")},
         {"records", one.records}});
  }
}

}  // namespace idem::cli
