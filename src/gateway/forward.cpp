#include "gateway/forward.hpp"

#include "core/exchange/answers.hpp"
#include "core/exchange/policy.hpp"
#include "http/alike.hpp"
#include "http/append.hpp"

#include <algorithm>
#include <array>

namespace idem::gateway {
namespace {

using http::append_field;
using http::append_number;

/// Ours, or one that a server may confuse with ours.
bool is_idem_field(std::string_view name) {
  static constexpr std::array<std::string_view, 6> ours{"Idem-Operation", "Idem-Fence",
                                                        "Idem-Attempt",   "Idem-Scope",
                                                        "Idem-Outcome",   "Idem-Reference"};
  const bool begins = name.size() > 5 && equal_names(name.substr(0, 4), "Idem");
  if (begins && !http::is_letter_or_digit(name[4])) return true;
  return std::ranges::any_of(ours, [&](std::string_view our) { return http::alike(name, our); });
}

}  // namespace

bool passed_before(const http::RequestHead& head, std::string_view via_name) {
  for (const auto& field : head.fields) {
    if (field.known != http::FieldName::via) continue;
    if (field.value.find(via_name) != std::string_view::npos) return true;
  }
  return false;
}

bool may_carry_key(std::string_view name) noexcept {
  static constexpr std::array<std::string_view, 9> meant{
      "Host",   "Expect", "Cookie",   "Content-Type",   "Content-Encoding",
      "Accept", "Range",  "If-Match", "X-Forwarded-For"};
  const bool other =
      std::ranges::any_of(meant, [&](std::string_view taken) { return equal_names(name, taken); });
  return !other && may_store(name);
}

bool is_key_field(std::string_view name, const GatewaySettings& settings) noexcept {
  return std::ranges::any_of(settings.key_headers,
                             [&](const auto& key) { return http::same_name(name, key); });
}

bool is_like_key_field(std::string_view name, const GatewaySettings& settings) noexcept {
  return std::ranges::any_of(settings.key_headers,
                             [&](const auto& key) { return http::alike(name, key); });
}

namespace {

/// The field's name for the upstream; empty: it is dropped. Only a key may use the key's new name.
std::string_view forwarded_name(std::string_view name, const GatewaySettings& settings) noexcept {
  const auto& forward = settings.key_forward;
  if (forward.kind == KeyForward::Kind::keep) return name;
  const bool renamed = forward.kind == KeyForward::Kind::rename;
  if (is_key_field(name, settings)) return renamed ? std::string_view(forward.name) : "";
  return renamed && http::alike(name, forward.name) ? "" : name;
}

}  // namespace

bool is_replaced(std::string_view name, const std::optional<tracing::Outgoing>& trace) noexcept {
  if (!trace) return false;
  return http::same_name(name, traceparent_field) ||
         (!trace->keeps_state && http::same_name(name, tracestate_field));
}

void append_forwarded_head(std::string& out, const http::RequestHead& head,
                           const GatewaySettings& settings, ForwardedKey forwarded,
                           const std::optional<tracing::Outgoing>& trace) {
  // With our own fields, so that it grows once.
  constexpr std::size_t own_bytes = 256;
  std::size_t bytes = own_bytes + head.origin_form.size() + head.host.size();
  for (const auto& field : head.fields) bytes += field.name.size() + field.value.size() + 4;
  out.reserve(out.size() + bytes);
  out += head.method;
  out += ' ';
  out += head.origin_form;
  out += " HTTP/1.1\r\n";
  append_field(out, "Host", head.host);
  const http::HopByHop hop(head.fields);
  for (const auto& field : head.fields) {
    if (field.known == http::FieldName::host || field.known == http::FieldName::expect) continue;
    if (hop.drops(field) || is_idem_field(field.name) || is_replaced(field.name, trace)) continue;
    const auto name =
        forwarded == ForwardedKey::as_it_came ? field.name : forwarded_name(field.name, settings);
    if (!name.empty()) append_field(out, name, field.value);
  }
  out += head.minor_version == 0 ? "Via: 1.0 " : "Via: 1.1 ";
  out += settings.via_name;
  out += "\r\n";
  if (trace) append_field(out, traceparent_field, traceparent_of(trace->parent));
}

void append_attempt_fields(std::string& out, const Attempt& attempt, const RecordId& id) {
  append_field(out, "Idem-Operation", to_hex(id.bytes));
  out += "Idem-Fence: ";
  append_number(out, attempt.fence);
  out += "\r\n";
  append_field(out, "Idem-Attempt", to_hex(attempt.token.bytes));
}

void append_content_length(std::string& out, std::uint64_t length) {
  out += "Content-Length: ";
  append_number(out, length);
  out += "\r\n";
}

void add_date(WireAnswer& answer) {
  for (const auto& field : answer.headers) {
    if (equal_names(field.name, "Date")) return;
  }
  const auto now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
  answer.headers.push_back({"Date", imf_fixdate(now)});
}

UpstreamAnswered end_to_end(const http::ResponseHead& head) {
  UpstreamAnswered answered;
  answered.answer.status = head.status;
  answered.answer.headers.reserve(head.fields.size() + 3);
  const http::HopByHop hop(head.fields);
  for (const auto& field : head.fields) {
    if (is_reserved_field(field.name)) {
      if (equal_names(field.name, "Idem-Outcome")) {
        // A value that cannot be parsed, or two that differ, prove nothing.
        const auto declared =
            parse_declared_outcome(field.value).value_or(DeclaredOutcome::unknown);
        answered.declared =
            answered.declared.value_or(declared) == declared ? declared : DeclaredOutcome::unknown;
      }
      if (equal_names(field.name, "Idem-Reference")) answered.reference = field.value;
      continue;
    }
    if (hop.drops(field)) continue;
    answered.answer.headers.push_back({std::string(field.name), std::string(field.value)});
  }
  return answered;
}

}  // namespace idem::gateway
