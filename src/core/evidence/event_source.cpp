#include "core/evidence/event_source.hpp"

#include "core/bytes/base64.hpp"
#include "core/bytes/digests.hpp"
#include "core/bytes/hex.hpp"
#include "core/bytes/json_string.hpp"
#include "core/json/place.hpp"
#include "core/json/scalars.hpp"

#include <idem/worker_limits.hpp>

#include <algorithm>
#include <charconv>

namespace idem {
namespace {

std::string text_at(std::string_view body, const std::string& pointer) {
  if (pointer.empty()) return {};
  const auto value = json_at(body, pointer);
  const bool is_scalar = value && !value->starts_with('{') && !value->starts_with('[');
  return is_scalar && *value != "null" ? json_plain(*value) : std::string();
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string kept_json(const StoredResponse& response) {
  std::string out = "{\"status\":" + std::to_string(response.status) + ",\"headers\":[";
  for (const Field& field : response.headers) {
    if (out.back() != '[') out += ',';
    out += "[" + json_string(field.name) + "," + json_string(field.value) + "]";
  }
  return out + "],\"body_b64\":" + json_string(to_base64(response.body)) + "}";
}

/// What a provider reported in an entry that was not applied: found or failed.
std::optional<Finding> finding_of(const EvidenceEntry& line) {
  const bool is_a_providers = line.source.starts_with("event:") || line.source.starts_with("poll:");
  if (line.applied || !is_a_providers || !check_json(line.evidence)) return std::nullopt;
  const std::string said = text_at(line.evidence, "/said");
  for (const Finding finding : {Finding::found, Finding::failed}) {
    if (said == name_of(finding)) return finding;
  }
  return std::nullopt;
}

std::optional<StoredResponse> parse_kept(std::string_view evidence) {
  const auto kept = json_at(evidence, "/kept");
  if (!kept) return std::nullopt;
  const auto status = number<int>(text_at(*kept, "/status"));
  auto body = from_base64(text_at(*kept, "/body_b64"));
  if (!status || !body) return std::nullopt;
  StoredResponse response{*status, {}, std::move(*body)};
  for (std::size_t i = 0;; ++i) {
    const std::string at = "/headers/" + std::to_string(i);
    const auto name = json_at(*kept, at + "/0");
    const auto value = json_at(*kept, at + "/1");
    if (!name || !value) return response;
    response.headers.push_back({json_plain(*name), json_plain(*value)});
  }
}

}  // namespace

std::expected<ProviderEvent, std::string> read_event(const EventSource& source,
                                                     std::string_view webhook_id,
                                                     std::string_view body) {
  if (!check_json(body)) return std::unexpected("it is no JSON, or has a name that occurs twice");
  ProviderEvent event;
  event.id = source.id.empty() ? std::string(webhook_id) : text_at(body, source.id);
  if (event.id.empty() || event.id.size() > limits::event_id_bytes_max) {
    return std::unexpected("it has no id of 1 to 255 bytes");
  }
  event.operation = parse_handle(text_at(body, source.operation));
  event.key = text_at(body, source.key);
  event.derived_key = text_at(body, source.derived_key);
  event.reference = text_at(body, source.reference);
  event.fence = number<Fence>(text_at(body, source.fence));
  event.finding = judge(source.says, 0, body);
  if (event.finding == Finding::found || event.finding == Finding::failed) {
    event.response = rebuild(source.rebuild, event.finding, body);
  }
  return event;
}

std::string log_name_of(const EventSource& source) { return "event:" + source.name; }

std::string evidence_of(const ProviderEvent& event, std::string_view body, bool keeps) {
  std::string out = "{\"event\":" + json_string(event.id) +
                    ",\"said\":" + json_string(name_of(event.finding)) + ",\"body_sha256\":\"" +
                    to_hex(sha256(body)) + "\"";
  if (keeps && event.response) out += ",\"kept\":" + kept_json(*event.response);
  return out + "}";
}

bool is_about(const EvidenceEntry& line, std::string_view source, const std::string& event_id) {
  return line.source == source && check_json(line.evidence) &&
         text_at(line.evidence, "/event") == event_id;
}

std::optional<KeptEvent> kept_answer(const std::vector<EvidenceEntry>& log,
                                     std::optional<Fence> fence) {
  std::optional<KeptEvent> kept;
  bool is_contradicted = false;
  for (const EvidenceEntry& line : log) {
    const auto said = line.fence == fence ? finding_of(line) : std::nullopt;
    if (!said) continue;
    KeptEvent one{&line, *said, parse_kept(line.evidence)};
    const bool differs = kept && kept->said != one.said;
    is_contradicted |= differs;
    // Of two that disagree, the one by which money moved, even if no answer can be made of it.
    const bool is_better =
        differs ? one.said == Finding::found : !kept || (one.response && !kept->response);
    if (is_better) kept = std::move(one);
  }
  if (kept) kept->is_contradicted = is_contradicted;
  return kept;
}

std::optional<Finding> reported_finding(const std::vector<EvidenceEntry>& log,
                                        std::optional<Fence> fence) {
  std::optional<Finding> reported;
  for (const EvidenceEntry& line : log) {
    if (line.fence && line.fence != fence) continue;
    const auto said = finding_of(line);
    if (said == Finding::found) return said;
    if (said) reported = said;
  }
  return reported;
}

}  // namespace idem
