#include "core/event_source.hpp"

#include "core/base64.hpp"
#include "core/digests.hpp"
#include "core/json_place.hpp"
#include "core/problem.hpp"
#include "core/record_handle.hpp"

#include <idem/json.hpp>
#include <idem/worker_limits.hpp>

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

std::string json_text(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string kept_json(const StoredResponse& response) {
  std::string out = "{\"status\":" + std::to_string(response.status) + ",\"headers\":[";
  for (const Field& field : response.headers) {
    if (out.back() != '[') out += ',';
    out += "[" + json_text(field.name) + "," + json_text(field.value) + "]";
  }
  return out + "],\"body_b64\":" + json_text(to_base64(response.body)) + "}";
}

std::optional<StoredResponse> parse_kept(std::string_view evidence) {
  if (!canonicalize(evidence)) return std::nullopt;
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

std::expected<EventSays, std::string> read_event(const EventSource& source,
                                                 std::string_view webhook_id,
                                                 std::string_view body) {
  if (!canonicalize(body)) return std::unexpected("it is no JSON without names that occur twice");
  EventSays event;
  event.id = source.id.empty() ? std::string(webhook_id) : text_at(body, source.id);
  if (event.id.empty() || event.id.size() > limits::event_id_bytes_max) {
    return std::unexpected("it has no id of 1 to 255 bytes");
  }
  event.operation = parse_handle(text_at(body, source.operation));
  event.reference = text_at(body, source.reference);
  event.fence = number<Fence>(text_at(body, source.fence));
  event.finding = judge(source.says, 0, body);
  if (event.finding == Finding::found || event.finding == Finding::failed) {
    event.response = rebuild(source.rebuild, event.finding, body);
  }
  return event;
}

std::string log_name_of(const EventSource& source) { return "event:" + source.name; }

std::string evidence_of(const EventSays& event, std::string_view body, bool keeps) {
  std::string out = "{\"event\":" + json_text(event.id) +
                    ",\"said\":" + json_text(name_of(event.finding)) + ",\"body_sha256\":\"" +
                    to_hex(sha256(body)) + "\"";
  if (keeps && event.response) out += ",\"kept\":" + kept_json(*event.response);
  return out + "}";
}

bool is_about(const EvidenceEntry& line, std::string_view source, const std::string& event_id) {
  return line.source == source && canonicalize(line.evidence) &&
         text_at(line.evidence, "/event") == event_id;
}

std::optional<Kept> kept_answer(const std::vector<EvidenceEntry>& log, Fence fence) {
  std::optional<Kept> kept;
  bool is_found = false;
  for (const EvidenceEntry& line : log) {
    const bool is_its = line.fence == fence && !line.applied && line.before == State::in_progress &&
                        line.source.starts_with("event:");
    if (!is_its) continue;
    auto response = parse_kept(line.evidence);
    if (!response) continue;
    const bool says_found = text_at(line.evidence, "/said") == name_of(Finding::found);
    const bool differs = kept && says_found != is_found;
    // Of two that disagree, that money moved.
    if (!kept || (differs && says_found)) {
      const bool is_contradicted = kept.has_value();
      kept = Kept{&line, std::move(*response), is_contradicted};
      is_found = says_found;
    }
    kept->is_contradicted |= differs;
  }
  return kept;
}

}  // namespace idem
