#include "cli/settings/parse.hpp"
#include "cli/settings/secret_file.hpp"
#include "config/words.hpp"
#include "core/bytes/percent.hpp"
#include "core/json/place.hpp"
#include "core/record/stored_fence.hpp"
#include "webhook/fetch.hpp"
#include "workers/reconciler.hpp"

#include <idem/foreign_call.hpp>
#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace idem::cli {
namespace {

using config::shown;
using workers::Provider;

constexpr std::string_view derived_key_of = "derived_key:";

bool names_the_record(std::string_view name) {
  return name == "operation" || name == "key" || name == "reference" ||
         (name.starts_with(derived_key_of) && name.size() > derived_key_of.size());
}

bool needs_key(std::string_view url) { return url.contains("{key}"); }

bool is_known(std::string_view name) {
  return name == "fence" || name == "scope" || names_the_record(name);
}

/// A value in a URL; none: it is empty, or consists of dots, which a client would remove from the
/// path together with the segment before.
std::optional<std::string> in_url(std::string_view name) {
  if (name.empty() || name == "." || name == "..") return std::nullopt;
  return percent_encoded(name);
}

std::optional<std::string> value_of(std::string_view name, const Record& record,
                                    std::string_view key) {
  if (name == "operation") return to_hex(record.id.bytes);
  if (name == "key") return in_url(key);
  if (name == "reference") return in_url(record.upstream_reference);
  if (name == "scope") return in_url(record.scope);
  if (name == "fence") return std::to_string(stored_fence(record.fence()));
  return derived_key(record.id, name.substr(derived_key_of.size()));
}

metrics::Unanswered reason_of(FetchError::Kind kind) {
  using Kind = FetchError::Kind;
  switch (kind) {
    case Kind::refused_by_rule:
      return metrics::Unanswered::refused;
    case Kind::connect:
      return metrics::Unanswered::connect;
    case Kind::tls:
      return metrics::Unanswered::tls;
    case Kind::timeout:
      return metrics::Unanswered::timeout;
    case Kind::too_large:
      return metrics::Unanswered::too_large;
    case Kind::protocol:
      return metrics::Unanswered::protocol;
  }
  return metrics::Unanswered::protocol;
}

/// Asks a provider about a record.
struct ProviderQuestion {
  FetchRequest request{};  ///< Its `url` is the template.

  std::expected<std::string, std::string> url_of(const Record& record, std::string_view key) const {
    std::string_view missing;
    auto url = expand(request.url, [&](auto name) {
      auto value = value_of(name, record, key);
      if (!value) missing = name;
      return value;
    });
    if (url) return std::move(*url);
    return std::unexpected(missing == "key" ? "the record has no client's key that can be read"
                                            : "the record has no upstream reference to ask by");
  }

  std::expected<Provider::Answer, Provider::NoAnswer> operator()(const Record& record,
                                                                 std::string_view key) const {
    auto url = url_of(record, key);
    if (!url) {
      return std::unexpected(
          Provider::NoAnswer(metrics::Unanswered::refused, std::move(url.error())));
    }
    FetchRequest asked = request;
    asked.url = *url;
    auto answer = Fetcher().fetch(asked);
    if (!answer) {
      const FetchError& error = answer.error();
      return std::unexpected(Provider::NoAnswer(reason_of(error.kind), error.why));
    }
    return Provider::Answer{answer->status, std::move(answer->body)};
  }
};

void parse_url(const ProviderGiven& given, bool has_scopes, FetchRequest& out,
               Complaints& complaints) {
  const std::string& url = given.url.text;
  if (url.empty()) {
    if (given.event_signature.text.empty()) {
      complaints.add(given.place,
                     "a provider has a url to ask, or sends events, or both; "
                     "write url or events.signature");
    }
    return;
  }
  // A value from a record must not choose the host that is asked.
  const auto authority = url.find("://");
  const auto path = authority == url.npos ? url.npos : url.find_first_of("/?", authority + 3);
  const std::string host = url.substr(0, path);
  const auto allowed = fetch_host_of(path == url.npos ? url : host + "/");
  if (!allowed || host.find('{') != host.npos) {
    complaints.add(given.url.place, shown(url) +
                                        " is no URL of a provider; write one such as "
                                        "https://api.example.com/charges?reference={reference}");
    return;
  }
  const auto names = placeholders(url);
  if (std::ranges::none_of(names, names_the_record) || !std::ranges::all_of(names, is_known)) {
    complaints.add(given.url.place,
                   shown(url) +
                       " must name the record by {operation}, {key}, "
                       "{reference} or {derived_key:PHASE}, and may name the attempt by {fence}");
    return;
  }
  if (url.contains('#')) {
    complaints.add(given.url.place,
                   shown(url) + " has a fragment, which is not sent; leave out # and the rest");
    return;
  }
  // One scope's record would get the answer about another's.
  if (needs_key(url) && has_scopes && !url.contains("{scope}") && !url.contains("{fence}")) {
    complaints.add(given.url.place,
                   "two scopes may have the same key; write {scope} or {fence} too");
  }
  if (given.found.items.empty() && given.failed.items.empty() && given.not_there.items.empty()) {
    complaints.add(given.url.place,
                   "no answer would have a meaning; write found, failed or not_there");
  }
  out.url = url;
  out.allowed_hosts = {*allowed};
}

enum class Of : std::uint8_t { answers, events };

std::vector<ResponseMatcher> parse_rules(const GivenList& given, Of what, Complaints& complaints) {
  std::vector<ResponseMatcher> rules;
  for (const Given& one : given.items) {
    const bool has_status = !one.text.empty() && one.text.front() >= '0' && one.text.front() <= '9';
    auto rule = ResponseMatcher::parse(one.text);
    if (what == Of::events && has_status) {
      complaints.add(one.place, shown(one.text) +
                                    " fits no event, which has no status; write one such as "
                                    "/type=charge.succeeded");
    } else if (rule) {
      rules.push_back(std::move(*rule));
    } else {
      complaints.add(one.place, rule.error());
    }
  }
  return rules;
}

std::string parse_pointer(const Given& given, Complaints& complaints) {
  if (!is_json_pointer(given.text)) {
    complaints.add(given.place, shown(given.text) + " is no JSON Pointer (RFC 6901)");
  }
  return given.text;
}

RebuildRule parse_rebuild(const ProviderGiven& given, const Given& body, const GivenList& headers,
                          Complaints& complaints) {
  RebuildRule out;
  out.found_status = std::atoi(given.found_status.text.c_str());
  out.failed_status = std::atoi(given.failed_status.text.c_str());
  out.content_type = given.content_type.text;
  if (out.content_type.empty() || !http::is_field_value(out.content_type)) {
    complaints.add(
        given.content_type.place,
        shown(out.content_type) + " is no media type; write one such as application/json");
  }
  out.body = parse_pointer(body, complaints);
  for (const Given& header : headers.items) {
    const auto colon = header.text.find(": ");
    const auto name = header.text.substr(0, colon);
    const bool is_sent = colon != header.text.npos && http::is_token(name) &&
                         http::is_field_value(header.text.substr(colon + 2));
    if (!is_sent || !may_store(name)) {
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
  return out;
}

/// The first line of a file that no other user may read.
std::optional<std::string> parse_secret(const Given& file, Complaints& complaints) {
  if (const auto fine = check_secret_file(file.text); !fine) {
    complaints.add(file.place, fine.error());
    return std::nullopt;
  }
  std::ifstream in(file.text);
  std::string line;
  std::getline(in, line);
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

void parse_credential(const Given& file, FetchRequest& out, Complaints& complaints) {
  if (file.text.empty()) return;
  auto value = parse_secret(file, complaints);
  if (!value) return;
  if (value->empty()) {
    complaints.add(file.place, file.text + " is empty; write the value of Authorization");
    return;
  }
  out.headers.push_back({"Authorization", std::move(*value)});
}

void parse_pauses(const ProviderGiven& given, Provider& out, Complaints& complaints) {
  parse_given_duration(given.grace, out.grace, complaints);
  parse_given_duration(given.retry_first, out.retry_first, complaints);
  parse_given_duration(given.retry_max, out.retry_max, complaints);
  if (out.retry_first <= Millis(0) || out.retry_first > out.retry_max) {
    complaints.add(given.place,
                   "retry_first must be above 0 and not above retry_max; write one such as 2s");
  }
  out.attempts_max = std::atoi(given.attempts.text.c_str());
}

std::shared_ptr<const Provider> parse_provider(const ProviderGiven& given, bool has_scopes,
                                               Complaints& complaints) {
  const std::size_t before = complaints.lines().size();
  Provider provider{.name = given.name.text};
  ProviderQuestion question;
  parse_url(given, has_scopes, question.request, complaints);
  question.request.max_bytes = limits::response_body_bytes_default;  // It may become the answer.
  parse_given_duration(given.timeout, question.request.timeout, complaints);
  if (question.request.timeout <= Millis(0) ||
      question.request.timeout > limits::call_timeout_default) {
    complaints.add(given.timeout.place, shown(given.timeout.text) +
                                            " is out of range; write more than 0 and at most 20s");
  }
  check_ca(given.ca, complaints);
  question.request.ca_file = given.ca.text;
  parse_credential(given.auth_file, question.request, complaints);
  provider.says = {parse_rules(given.found, Of::answers, complaints),
                   parse_rules(given.failed, Of::answers, complaints),
                   parse_rules(given.not_there, Of::answers, complaints)};
  provider.rebuild = parse_rebuild(given, given.body, given.headers, complaints);
  provider.sends_events = !given.event_signature.text.empty();
  parse_pauses(given, provider, complaints);
  if (complaints.lines().size() != before) return nullptr;
  if (!given.url.text.empty()) {
    provider.needs_key = needs_key(given.url.text);
    provider.cannot_ask = [question](const Record& record, std::string_view key) {
      const auto url = question.url_of(record, key);
      return url ? std::nullopt : std::optional(url.error());
    };
    provider.ask = std::move(question);
  }
  return std::make_shared<const Provider>(std::move(provider));
}

EventSignature parse_signature(const ProviderGiven& given, Complaints& complaints) {
  using Scheme = EventSignature::Scheme;
  static const std::map<std::string, Scheme> schemes{
      {"standard", Scheme::standard}, {"stripe", Scheme::stripe}, {"hmac", Scheme::hmac}};
  EventSignature out;
  const auto scheme = schemes.find(given.event_signature.text);
  if (scheme != schemes.end()) out.scheme = scheme->second;
  out.field = given.event_field.text;
  out.prefix = given.event_prefix.text;
  if (out.field.empty() && out.scheme == Scheme::stripe) out.field = "Stripe-Signature";
  if (out.scheme != Scheme::standard && !http::is_token(out.field)) {
    complaints.add(given.place,
                   "events.field must name the field with the signature, such as X-Signature");
  }
  for (const Given& file : given.event_secrets.items) {
    auto secret = event_secret(out.scheme, parse_secret(file, complaints).value_or(""));
    if (secret) {
      out.secrets.push_back(std::move(*secret));
    } else {
      complaints.add(file.place, file.text +
                                     " holds no secret of this scheme: of standard "
                                     "whsec_ and 24 to 64 bytes in base64, of the others "
                                     "at least 16 characters");
    }
  }
  if (given.event_secrets.items.empty()) {
    complaints.add(given.place,
                   "without a secret anyone could send events; write events.secret_files");
  }
  return out;
}

std::shared_ptr<const EventSource> parse_event_source(const ProviderGiven& given,
                                                      bool keys_are_shared,
                                                      Complaints& complaints) {
  const std::size_t before = complaints.lines().size();
  EventSource source{.name = given.name.text};
  source.signature = parse_signature(given, complaints);
  source.id = parse_pointer(given.event_id, complaints);
  source.operation = parse_pointer(given.event_operation, complaints);
  source.key = parse_pointer(given.event_key, complaints);
  source.derived_key = parse_pointer(given.event_derived_key, complaints);
  source.phase = given.event_phase.text;
  source.reference = parse_pointer(given.event_reference, complaints);
  source.fence = parse_pointer(given.event_fence, complaints);
  source.says = {parse_rules(given.event_found, Of::events, complaints),
                 parse_rules(given.event_failed, Of::events, complaints),
                 {}};
  source.rebuild = parse_rebuild(given, given.event_body, given.event_headers, complaints);
  if (source.id.empty() && source.signature.scheme != EventSignature::Scheme::standard) {
    complaints.add(
        given.place,
        "events.id must point at the id by which a repeated event is recognised, such as /id");
  }
  if (source.operation.empty() && source.key.empty() && source.derived_key.empty() &&
      source.reference.empty()) {
    complaints.add(given.place,
                   "events name their record by events.operation, events.key, events.derived_key "
                   "or events.reference; write one");
  }
  // An event about one record would settle another one with the same key.
  if (!source.key.empty() && keys_are_shared && source.fence.empty()) {
    complaints.add(given.event_key.place,
                   "two scopes or operations may have the same key; write events.fence too");
  }
  if (source.derived_key.empty() != source.phase.empty()) {
    complaints.add(given.place,
                   "events.derived_key and events.phase belong together; write both or neither");
  }
  if (given.event_found.items.empty() && given.event_failed.items.empty()) {
    complaints.add(given.place,
                   "no event would have a meaning; write events.found or events.failed");
  }
  // A later attempt may have charged after the one that failed.
  if (!given.event_failed.items.empty() && source.fence.empty()) {
    complaints.add(
        given.event_failed.items.front().place,
        "a failed attempt says nothing about the next one; write events.fence, the place of "
        "the Idem-Fence that the upstream received");
  }
  if (complaints.lines().size() != before) return nullptr;
  return std::make_shared<const EventSource>(std::move(source));
}

/// Settings of unsigned events would have no effect.
void refuse_unsigned_events(ProviderGiven given, Complaints& complaints) {
  for (const auto& setting : settings_of(given)) {
    if (!setting.path.starts_with("events.")) continue;
    const config::Place* const place = config::given_at(setting);
    if (place == nullptr) continue;
    complaints.add(*place, std::string(setting.path) +
                               " has no effect without events.signature; write how its events are "
                               "signed: standard, stripe or hmac");
  }
}

}  // namespace

EventSources parse_event_sources(const std::vector<ProviderGiven>& given, bool keys_are_shared,
                                 Complaints& complaints) {
  EventSources parsed;
  for (const ProviderGiven& one : given) {
    if (one.event_signature.text.empty()) {
      refuse_unsigned_events(one, complaints);
      continue;
    }
    if (auto source = parse_event_source(one, keys_are_shared, complaints))
      parsed.emplace(one.name.text, source);
  }
  return parsed;
}

Providers parse_providers(const std::vector<ProviderGiven>& given, bool has_scopes,
                          Complaints& complaints) {
  Providers parsed;
  for (const ProviderGiven& one : given) {
    const bool is_new =
        parsed.emplace(one.name.text, parse_provider(one, has_scopes, complaints)).second;
    if (!is_new) complaints.add(one.name.place, shown(one.name.text) + " names two providers");
  }
  return parsed;
}

}  // namespace idem::cli
