#include "gateway/forward.hpp"

#include "core/answers.hpp"
#include "core/policy.hpp"

#include <charconv>

namespace idem::gateway {
namespace {

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

void append_number(std::string& out, std::uint64_t number) {
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

bool is_idem_field(std::string_view name) {
  return name.size() > 5 && equal_names(name.substr(0, 5), "Idem-");
}

}  // namespace

bool passed_before(const http::RequestHead& head, std::string_view via_name) {
  for (const auto& field : head.fields) {
    if (field.known != http::FieldName::via) continue;
    if (field.value.find(via_name) != std::string_view::npos) return true;
  }
  return false;
}

void append_forwarded_head(std::string& out, const http::RequestHead& head,
                           std::string_view via_name) {
  out += head.method;
  out += ' ';
  out += head.origin_form;
  out += " HTTP/1.1\r\n";
  append_field(out, "Host", head.host);
  const http::HopByHop hop(head.fields);
  for (const auto& field : head.fields) {
    if (field.known == http::FieldName::host || field.known == http::FieldName::expect) continue;
    if (hop.drops(field) || is_idem_field(field.name)) continue;
    append_field(out, field.name, field.value);
  }
  out += head.minor_version == 0 ? "Via: 1.0 " : "Via: 1.1 ";
  out += via_name;
  out += "\r\n";
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

void add_date(Answer& answer) {
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
        // What cannot be understood, or is said twice and differently, is no proof of anything.
        const auto says = parse_upstream_says(field.value).value_or(UpstreamSays::unknown);
        answered.says = answered.says.value_or(says) == says ? says : UpstreamSays::unknown;
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
