#include "cli/pages/man_page.hpp"
#include "cli/settings/environment.hpp"
#include "cli/settings/gateway_flags.hpp"
#include "cli/settings/route_settings.hpp"

namespace idem::cli {
namespace {

std::string entry(const config::Setting& setting) {
  const std::string path(setting.path);
  std::string text =
      ".TP\n" + roff("`" + path + "`") + "\n" + roff(std::string(setting.help)) + ".\n.br\n";
  text += "Values: " + roff(config::values_of(setting.shape));
  const auto value = config::value_of(setting);
  if (setting.required) {
    text += "; required";
  } else if (!value.empty()) {
    text += "; default " + roff("`" + value + "`");
  }
  if (!setting.flag.empty()) {
    const std::string flag(setting.flag);
    text += "; flag " + roff("`" + flag + "`") + ", variable " +
            roff("`" + variable_of(setting.flag) + "`");
  }
  if (setting.change == config::Change::live) text += "; a reload applies it";
  return text + ".\n";
}

std::string section(const std::string& title, const std::string& about,
                    const std::vector<config::Setting>& table) {
  std::string text = ".SH " + title + "\n" + about + "\n";
  for (const auto& setting : table) text += entry(setting);
  return text;
}

}  // namespace

std::string settings_man_page() {
  GatewayFlags flags;
  RouteGiven route;
  DestinationGiven destination;
  ProviderGiven provider;
  return man_title("idem.yaml", 5) +
         ".SH NAME\nidem.yaml \\- settings of idem gateway and idem worker\n"
         ".SH DESCRIPTION\n"
         "A YAML file that \\fB\\-\\-config\\fR names. A flag wins over a variable, a variable "
         "over "
         "the file, the file over the default. \\fBidem config check\\fR reports what is wrong "
         "with a file, \\fBidem config print\\fR prints the effective settings.\n"
         ".PP\n"
         "\\fBa.b\\fR is the member \\fBb\\fR of the map \\fBa\\fR. Durations are whole numbers "
         "with ms, s, m, h or d; sizes with B, KiB, MiB or GiB. A relative path in the file is "
         "relative to the folder of the file. A gateway applies settings that say so on SIGHUP; "
         "the others need a restart.\n" +
         section("SETTINGS", "A worker refuses the settings that only a gateway has.",
                 settings_of(flags)) +
         section("ROUTES",
                 "Members of each map in the list \\fBroutes\\fR. The first route whose "
                 "\\fBmatch\\fR fits a request applies. A reload applies changes.",
                 settings_of(route)) +
         section("DESTINATIONS",
                 "Members of each map in the list \\fBdestinations\\fR: the receivers of outbox "
                 "messages.",
                 settings_of(destination)) +
         section("PROVIDERS",
                 "Members of each map in the list \\fBproviders\\fR: who knows the outcome of an "
                 "attempt.",
                 settings_of(provider)) +
         ".SH SEE ALSO\n.BR idem (1),\n.BR idem\\-gateway (1),\n.BR idem\\-worker (1),\n"
         ".BR idem\\-config (1)\n";
}

}  // namespace idem::cli
