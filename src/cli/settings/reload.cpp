#include "cli/settings/reload.hpp"

#include "cli/command_line/words.hpp"
#include "cli/settings/settings_changes.hpp"

namespace idem::cli {
namespace {

/// Empty: no change needs a restart.
std::string restart_sentence(const GatewayFlags& given, const GatewayFlags& next) {
  const auto changed = changed_for_restart(given, next);
  return changed.empty() ? "" : "a restart is needed for " + joined(changed, ", ");
}

}  // namespace

ReadAgain read_again(const SettingsSource& source, const GatewayFlags& given) {
  auto read = source.read();
  // The texts may show what differs, also where they have no meaning.
  Complaints ignored;
  const auto texts = read ? std::optional(read->given) : source.gather(ignored);
  ReadAgain found;
  if (texts) found.difference.changes = changes_between(given, *texts);
  if (!read) {
    found.difference.refused = joined(read.error(), " | ");
  } else if (const auto restart = restart_sentence(given, read->given); !restart.empty()) {
    found.difference.refused = restart + "; nothing was changed";
  } else {
    found.settings = std::move(*read);
  }
  return found;
}

void keep_what_stays(gateway::GatewaySettings& next, const gateway::GatewaySettings& current) {
  next.owner = current.owner;
  next.via_name = current.via_name;
  next.upstream_tls = current.upstream_tls;
}

}  // namespace idem::cli
