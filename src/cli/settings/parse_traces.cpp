#include "cli/settings/parse.hpp"
#include "cli/settings/secret_file.hpp"
#include "config/words.hpp"
#include "core/bytes/ascii.hpp"
#include "http/head.hpp"
#include "webhook/fetch.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>

namespace idem::cli {
namespace {

using config::shown;

/// The base of a collector gets the path that OTLP/HTTP gives traces.
std::string with_path(const std::string& url) {
  const auto host = url.find("//");
  const auto path = url.find('/', host == url.npos ? 0 : host + 2);
  if (path == url.npos) return url + "/v1/traces";
  return path + 1 == url.size() ? url + "v1/traces" : url;
}

/// One field for the collector's login.
void parse_header(const Given& file, std::vector<Field>& out, Complaints& complaints) {
  if (file.text.empty()) return;
  if (const auto fine = check_secret_file(file.text); !fine) {
    return complaints.add(file.place, fine.error());
  }
  std::ifstream in(file.text);
  std::string line;
  std::getline(in, line);
  const auto colon = line.find(':');
  const std::string name = line.substr(0, colon);
  const std::string value(colon == line.npos ? std::string_view()
                                             : trimmed(std::string_view(line).substr(colon + 1)));
  if (!http::is_token(name) || value.empty() || std::ranges::any_of(value, is_control)) {
    return complaints.add(file.place, file.text +
                                          " holds no header field; write one line, such as "
                                          "Authorization: Bearer TOKEN");
  }
  out.push_back({name, value});
}

}  // namespace

void parse_traces(const GatewayFlags& flags, tracing::TraceSettings& out, Complaints& complaints) {
  if (flags.traces_url.text.empty()) {
    // config print gives each its default, too.
    const GatewayFlags initial;
    for (const auto other :
         {&GatewayFlags::traces_sample, &GatewayFlags::traces_one_in, &GatewayFlags::traces_service,
          &GatewayFlags::traces_header_file, &GatewayFlags::traces_ca}) {
      if ((flags.*other).text == (initial.*other).text) continue;
      complaints.add((flags.*other).place,
                     "without a collector nothing is traced; write --traces URL, or in the file "
                     "traces: {url: \"http://127.0.0.1:4318\"}");
    }
    return;
  }
  if (const auto host = fetch_host_of(flags.traces_url.text); !host) {
    complaints.add(flags.traces_url.place, shown(flags.traces_url.text) + ": " + host.error());
  }
  out.url = with_path(flags.traces_url.text);
  parse_header(flags.traces_header_file, out.headers, complaints);
  check_ca(flags.traces_ca, complaints);
  out.ca_file = flags.traces_ca.text;
  out.service = flags.traces_service.text;
  out.sampling.follows_parent = flags.traces_sample.text == "parent";
  const std::string& one_in = flags.traces_one_in.text;
  std::from_chars(one_in.data(), one_in.data() + one_in.size(), out.sampling.one_in);
}

}  // namespace idem::cli
