#include "cli/settings/reload.hpp"

#include "cli/settings/settings_changes.hpp"

namespace idem::cli {
namespace {

using Lines = std::vector<std::string>;

std::string joined(const Lines& lines, std::string_view separator) {
  std::string out;
  for (const auto& line : lines) out += (out.empty() ? "" : std::string(separator)) + line;
  return out;
}

/// Empty: no change needs a restart.
std::string restart_sentence(const GatewayFlags& given, const GatewayFlags& next) {
  const auto changed = changed_for_restart(given, next);
  return changed.empty() ? "" : "a restart is needed for " + joined(changed, ", ");
}

}  // namespace

admin::SettingsDifference difference_of(const SettingsSource& source, const GatewayFlags& given) {
  const auto read = source.read();
  // The texts may show what differs, also where they have no meaning.
  Complaints ignored;
  const auto texts = read ? std::optional(read->given) : source.gather(ignored);
  admin::SettingsDifference found;
  if (texts) found.changes = changes_between(given, *texts);
  if (!read) {
    found.refused = joined(read.error(), " | ");
  } else if (const auto restart = restart_sentence(given, read->given); !restart.empty()) {
    found.refused = restart + ".";
  }
  return found;
}

std::expected<ReadSettings, std::string> read_again(const SettingsSource& source,
                                                    const GatewayFlags& given,
                                                    const gateway::GatewaySettings& current) {
  auto read = source.read();
  if (!read) return std::unexpected(joined(read.error(), " | "));
  const auto restart = restart_sentence(given, read->given);
  if (!restart.empty()) return std::unexpected(restart + "; nothing was changed");
  auto& next = read->options.settings;
  next.owner = current.owner;
  next.via_name = current.via_name;
  next.upstream_tls = current.upstream_tls;
  return std::move(*read);
}

}  // namespace idem::cli
