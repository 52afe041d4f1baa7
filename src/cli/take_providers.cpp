#include "cli/commands.hpp"
#include "cli/take.hpp"
#include "config/words.hpp"
#include "core/json_place.hpp"
#include "webhook/fetch.hpp"

#include <idem/foreign_call.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace idem::cli {
namespace {

using config::shown;
using workers::Provider;

/// RFC 3986 §2.3: what need not be escaped anywhere in a URL.
std::string percent_encoded(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~").contains(c);
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out;
}

constexpr std::string_view derived_key_of = "derived_key:";

bool is_known(std::string_view name) {
  return name == "operation" || name == "reference" ||
         (name.starts_with(derived_key_of) && name.size() > derived_key_of.size());
}

std::optional<std::string> value_of(std::string_view name, const Record& record) {
  if (name == "operation") return to_hex(record.id.bytes);
  if (name == "reference") {
    if (record.upstream_reference.empty()) return std::nullopt;
    return percent_encoded(record.upstream_reference);
  }
  return derived_key(record.id, name.substr(derived_key_of.size()));
}

/// How a provider is asked: everything but the record.
struct Asking {
  FetchRequest request{};  ///< Its `url` is the template.

  std::expected<Provider::Heard, std::string> operator()(const Record& record) const {
    const auto url = expand(request.url, [&](auto name) { return value_of(name, record); });
    if (!url) return std::unexpected("the record has no upstream reference to ask by");
    FetchRequest asked = request;
    asked.url = *url;
    auto answer = Fetcher().fetch(asked);
    if (!answer) return std::unexpected(answer.error().why);
    return Provider::Heard{answer->status, std::move(answer->body)};
  }
};

void take_url(const ProviderGiven& given, FetchRequest& out, Complaints& complaints) {
  const std::string& url = given.url.text;
  if (url.empty()) return;  // That it is missing was said.
  // Whoever chose a reference must not choose whom we ask.
  const auto authority = url.find("://");
  const auto path = authority == url.npos ? url.npos : url.find_first_of("/?", authority + 3);
  const std::string host = url.substr(0, path);
  const auto allowed = fetch_host_of(path == url.npos ? url : host + "/");
  if (!allowed || host.find('{') != host.npos) {
    complaints.add(given.url.place, shown(url) +
                                        " is no address to ask at; write one such as "
                                        "https://api.example.com/charges?reference={reference}");
    return;
  }
  const auto names = placeholders(url);
  if (names.empty() || !std::ranges::all_of(names, is_known)) {
    complaints.add(given.url.place, shown(url) +
                                        " must name the record by {operation}, {reference} or "
                                        "{derived_key:PHASE}");
    return;
  }
  out.url = url;
  out.allowed_hosts = {*allowed};
}

std::vector<SayingRule> take_rules(const GivenList& given, Complaints& complaints) {
  std::vector<SayingRule> rules;
  for (const Given& one : given.items) {
    auto rule = SayingRule::parse(one.text);
    if (rule) {
      rules.push_back(std::move(*rule));
    } else {
      complaints.add(one.place, rule.error());
    }
  }
  return rules;
}

void take_rebuild(const ProviderGiven& given, RebuildRule& out, Complaints& complaints) {
  out.found_status = std::atoi(given.found_status.text.c_str());
  out.failed_status = std::atoi(given.failed_status.text.c_str());
  out.content_type = given.content_type.text;
  out.body = given.body.text;
  if (!is_json_pointer(out.body)) {
    complaints.add(given.body.place, shown(out.body) + " is no JSON Pointer (RFC 6901)");
  }
  for (const Given& header : given.headers.items) {
    const auto colon = header.text.find(": ");
    const auto name = header.text.substr(0, colon);
    if (colon == header.text.npos || !http::is_token(name) || !may_store(name)) {
      complaints.add(header.place, shown(header.text) +
                                       " is no field that can be replayed; write one such as "
                                       "\"Location: /v1/payments/{/id}\"");
      continue;
    }
    for (const auto& pointer : placeholders(header.text)) {
      if (pointer.empty() || !is_json_pointer(pointer)) {
        complaints.add(header.place,
                       shown(header.text) + " must have JSON Pointers (RFC 6901) in its braces");
      }
    }
    out.headers.push_back({name, header.text.substr(colon + 2)});
  }
}

void take_credential(const Given& file, FetchRequest& out, Complaints& complaints) {
  if (file.text.empty()) return;
  if (const auto fine = check_secret_file(file.text); !fine) {
    complaints.add(file.place, fine.error());
    return;
  }
  std::ifstream in(file.text);
  std::string value;
  std::getline(in, value);
  if (value.empty()) {
    complaints.add(file.place, file.text + " holds nothing; write what Authorization says");
    return;
  }
  out.headers.push_back({"Authorization", std::move(value)});
}

void take_pauses(const ProviderGiven& given, Provider& out, Complaints& complaints) {
  take_duration(given.grace, out.grace, complaints);
  take_duration(given.retry_first, out.retry_first, complaints);
  take_duration(given.retry_max, out.retry_max, complaints);
  if (out.retry_first <= Millis(0) || out.retry_first > out.retry_max) {
    complaints.add(given.retry_first.place,
                   "retry_first must be above 0 and not above retry_max; write one such as 2s");
  }
  out.attempts_max = std::atoi(given.attempts.text.c_str());
}

std::shared_ptr<const Provider> take_provider(const ProviderGiven& given, Complaints& complaints) {
  const std::size_t before = complaints.lines().size();
  Provider provider{.name = given.name.text};
  Asking asking;
  take_url(given, asking.request, complaints);
  take_duration(given.timeout, asking.request.timeout, complaints);
  if (asking.request.timeout <= Millis(0) ||
      asking.request.timeout > limits::call_timeout_default) {
    complaints.add(given.timeout.place, shown(given.timeout.text) +
                                            " is out of range; write more than 0 and at most 20s");
  }
  asking.request.ca_file = given.ca.text;
  take_credential(given.auth_file, asking.request, complaints);
  provider.says = {take_rules(given.found, complaints), take_rules(given.failed, complaints),
                   take_rules(given.not_there, complaints)};
  take_rebuild(given, provider.rebuild, complaints);
  take_pauses(given, provider, complaints);
  if (complaints.lines().size() != before) return nullptr;
  provider.ask = std::move(asking);
  return std::make_shared<const Provider>(std::move(provider));
}

}  // namespace

Providers take_providers(const std::vector<ProviderGiven>& given, Complaints& complaints) {
  Providers taken;
  for (const ProviderGiven& one : given) {
    const bool is_new = taken.emplace(one.name.text, take_provider(one, complaints)).second;
    if (!is_new) complaints.add(one.name.place, shown(one.name.text) + " names two providers");
  }
  return taken;
}

}  // namespace idem::cli
