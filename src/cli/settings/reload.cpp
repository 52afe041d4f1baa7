#include "cli/settings/reload.hpp"

namespace idem::cli {
namespace {

std::string joined(const Lines& lines, std::string_view separator) {
  std::string out;
  for (const auto& line : lines) out += (out.empty() ? "" : std::string(separator)) + line;
  return out;
}

}  // namespace

std::expected<ReadSettings, std::string> read_again(const SettingsSource& source,
                                                    const GatewayFlags& given,
                                                    const gateway::GatewaySettings& current) {
  auto read = source.read();
  if (!read) return std::unexpected(joined(read.error(), " | "));
  const auto changed = changed_for_restart(given, read->given);
  if (!changed.empty()) {
    return std::unexpected("a restart is needed for " + joined(changed, ", ") +
                           "; nothing was changed");
  }
  auto& next = read->options.settings;
  next.owner = current.owner;
  next.via_name = current.via_name;
  next.upstream_tls = current.upstream_tls;
  return std::move(*read);
}

}  // namespace idem::cli
