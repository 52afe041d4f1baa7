#include "fuzz/heads.hpp"

#include <functional>

namespace idem::fuzz {
namespace {

using http::FieldName;
using http::FieldView;

void add(std::string& out, std::string_view part) {
  out += std::to_string(part.size());
  out += ':';
  out += part;
  out += '\n';
}
void add(std::string& out, std::uint64_t number) { add(out, std::to_string(number)); }

void add(std::string& out, const std::vector<FieldView>& fields) {
  for (const FieldView& field : fields) {
    add(out, field.name);
    add(out, field.value);
    add(out, static_cast<std::uint64_t>(field.known));
  }
}

std::string_view name_of(FieldName known) {
  switch (known) {
    case FieldName::other:
      return "";
    case FieldName::authorization:
      return "authorization";
    case FieldName::connection:
      return "connection";
    case FieldName::content_length:
      return "content-length";
    case FieldName::content_type:
      return "content-type";
    case FieldName::expect:
      return "expect";
    case FieldName::host:
      return "host";
    case FieldName::idempotency_key:
      return "idempotency-key";
    case FieldName::keep_alive:
      return "keep-alive";
    case FieldName::location:
      return "location";
    case FieldName::proxy_connection:
      return "proxy-connection";
    case FieldName::retry_after:
      return "retry-after";
    case FieldName::te:
      return "te";
    case FieldName::trailer:
      return "trailer";
    case FieldName::transfer_encoding:
      return "transfer-encoding";
    case FieldName::upgrade:
      return "upgrade";
    case FieldName::via:
      return "via";
  }
  return "";
}

FieldName known_by(std::string_view name) {
  for (int i = 1; i <= static_cast<int>(FieldName::via); ++i) {
    if (http::same_name(name, name_of(static_cast<FieldName>(i)))) return static_cast<FieldName>(i);
  }
  return FieldName::other;
}

}  // namespace

std::string describe(const http::RequestHead& head) {
  std::string out;
  for (const auto part : {head.method, head.target, head.origin_form, head.host}) add(out, part);
  add(out, static_cast<std::uint64_t>(head.minor_version));
  add(out, static_cast<std::uint64_t>(head.framing));
  add(out, head.content_length);
  for (const bool flag : {head.keep_alive, head.expect_continue, head.upgrade}) {
    add(out, flag ? "yes" : "no");
  }
  add(out, head.fields);
  return out;
}

std::string describe(const http::ResponseHead& head) {
  std::string out;
  add(out, static_cast<std::uint64_t>(head.status));
  add(out, head.reason);
  add(out, static_cast<std::uint64_t>(head.minor_version));
  add(out, static_cast<std::uint64_t>(head.framing));
  add(out, head.content_length);
  add(out, head.keep_alive ? "yes" : "no");
  add(out, head.fields);
  return out;
}

bool same_verdict(const http::HeadResult& a, const http::HeadResult& b) {
  if (a && b) return *a == *b;
  return !a && !b && a.error().status == b.error().status && a.error().detail == b.error().detail;
}

std::size_t count_of(const std::vector<FieldView>& fields, std::string_view name) {
  return static_cast<std::size_t>(std::ranges::count_if(
      fields, [&](const FieldView& field) { return http::same_name(field.name, name); }));
}

std::string_view value_of(const std::vector<FieldView>& fields, std::string_view name) {
  const auto found = std::ranges::find_if(
      fields, [&](const FieldView& field) { return http::same_name(field.name, name); });
  return found == fields.end() ? std::string_view{} : found->value;
}

bool lies_in(std::string_view text, std::string_view whole) {
  const std::less_equal<const char*> before;
  return text.empty() || (before(whole.data(), text.data()) &&
                          before(text.data() + text.size(), whole.data() + whole.size()));
}

void check_fields(const std::vector<FieldView>& fields, std::string_view head) {
  for (const FieldView& field : fields) {
    check(http::is_token(field.name), "a field name is a token");
    check(http::is_field_value(field.value), "a field value can be written out");
    check(lies_in(field.name, head) && lies_in(field.value, head), "a field lies in its head");
    check(field.known == known_by(field.name), "a field is known by its name");
  }
}

void append_fields(std::string& out, const std::vector<FieldView>& fields) {
  for (const FieldView& field : fields) {
    out += field.name;
    out += ':';
    out += field.value;
    out += "\r\n";
  }
  out += "\r\n";
}

}  // namespace idem::fuzz
