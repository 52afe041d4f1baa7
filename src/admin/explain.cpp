#include "admin/explain.hpp"

#include "admin/json_members.hpp"
#include "admin/keys_json.hpp"
#include "admin/order_reading.hpp"
#include "admin/replies.hpp"
#include "core/bytes/base64.hpp"
#include "core/exchange/problem.hpp"
#include "json/writer.hpp"

#include <idem/limits.hpp>

namespace idem::admin {
namespace {

using json::Writer;

Read<std::vector<Field>> read_headers(const Value& object) {
  std::vector<Field> fields;
  const auto* value = object.find("headers");
  if (value == nullptr) return fields;
  const auto* items = std::get_if<json::Array>(&value->is);
  if (items == nullptr) return wrong("/headers", "must be an array of [\"name\",\"value\"]");
  for (const auto& item : *items) {
    const auto* pair = std::get_if<json::Array>(&item.is);
    const bool is_pair = pair != nullptr && pair->size() == 2 &&
                         std::holds_alternative<std::string>((*pair)[0].is) &&
                         std::holds_alternative<std::string>((*pair)[1].is);
    if (!is_pair) {
      return wrong("/headers/" + std::to_string(fields.size()), "must be [\"name\",\"value\"]");
    }
    fields.push_back({std::get<std::string>((*pair)[0].is), std::get<std::string>((*pair)[1].is)});
  }
  return fields;
}

Read<std::string> read_body(const Value& object) {
  const auto* value = object.find("body_b64");
  if (value == nullptr) return std::string();
  const auto* text = std::get_if<std::string>(&value->is);
  auto bytes = text != nullptr ? from_base64(*text) : std::nullopt;
  if (!bytes) return wrong("/body_b64", "must be base64 (RFC 4648 4) with its padding");
  return std::move(*bytes);
}

void write_list(Writer& out, std::string_view name, const std::vector<std::string>& list) {
  out.name(name);
  out.begin_array();
  for (const std::string& one : list) out.text(one);
  out.end_array();
}

void write_key(Writer& out, const std::optional<Explanation::Key>& key) {
  out.name("key");
  if (!key) return out.null();
  out.begin_object();
  out.member("field", key->field);
  out.member("syntax", key->syntax);
  out.member("bytes", key->bytes);
  out.end_object();
}

void write_fingerprint(Writer& out, const std::optional<Explanation::Fingerprint>& facts) {
  out.name("fingerprint");
  if (!facts) return out.null();
  out.begin_object();
  write_optional(out, "matches", facts->matches);
  write_list(out, "counted", facts->counted);
  write_list(out, "left_out", facts->left_out);
  out.member("form", facts->form);
  out.end_object();
}

void write_answer(Writer& out, const Explanation::Answer& answer) {
  out.name("answer");
  out.begin_object();
  write_optional(out, "status", answer.status);
  write_text_or_null(out, "code", answer.code);
  write_text_or_null(out, "retry", answer.retry);
  out.end_object();
}

void write_differences(Writer& out, const std::vector<Explanation::Difference>& differences) {
  out.name("differences");
  out.begin_array();
  for (const auto& one : differences) {
    out.begin_object();
    out.member("part", one.part);
    out.member("stored", one.stored);
    out.member("sent", one.sent);
    out.end_object();
  }
  out.end_array();
}

}  // namespace

std::expected<RequestInQuestion, std::string> parse_question(std::string_view body) {
  const auto object = read_object(body, {"method", "target", "headers", "body_b64", "scope"});
  if (!object) return std::unexpected(object.error());
  auto method = read_text(*object, "method", limits::admin_body_bytes_max);
  if (!method) return std::unexpected(std::move(method.error()));
  auto target = read_text(*object, "target", limits::admin_body_bytes_max);
  if (!target) return std::unexpected(std::move(target.error()));
  auto headers = read_headers(*object);
  if (!headers) return std::unexpected(std::move(headers.error()));
  auto bytes = read_body(*object);
  if (!bytes) return std::unexpected(std::move(bytes.error()));
  RequestInQuestion question{std::move(*method), std::move(*target), std::move(*headers),
                             std::move(*bytes)};
  if (object->find("scope") != nullptr) {
    auto scope = read_text(*object, "scope", limits::scope_bytes_max);
    if (!scope) return std::unexpected(std::move(scope.error()));
    question.scope = std::move(*scope);
  }
  return question;
}

std::string explanation_page(const Explanation& explanation) {
  Writer out;
  out.begin_object();
  write_text_or_null(out, "route", explanation.route.value_or(""));
  out.member("enforce", explanation.in_shadow ? "shadow" : "on");
  write_text_or_null(out, "scope", explanation.scope.value_or(""));
  write_text_or_null(out, "operation", explanation.operation.value_or(""));
  write_key(out, explanation.key);
  write_text_or_null(out, "operation_ref",
                     explanation.id ? to_hex(explanation.id->bytes) : std::string());
  out.member("outcome", name_of(explanation.outcome));
  out.member("why", explanation.why);
  write_answer(out, explanation.answer);
  out.name("record");
  if (explanation.record) {
    out.json(key_summary(*explanation.record));
  } else {
    out.null();
  }
  write_fingerprint(out, explanation.fingerprint);
  write_differences(out, explanation.differences);
  out.end_object();
  return out.take() + "\n";
}

Task<WireAnswer> explain_to(const AdminParts& parts, http::ServerStream& client) {
  const auto& head = client.head();
  if (!parts.explain) {
    co_return to_answer({.code = ProblemCode::not_found,
                         .detail = "A worker serves no requests, so it explains none: ask a "
                                   "gateway."});
  }
  if (head.origin_form.contains('?')) co_return invalid("This path has no parameters.");
  if (!is_json(head)) co_return invalid("Content-Type must be application/json.", 415);
  auto body = co_await client.read_body(limits::admin_body_bytes_max, parts.spill);
  if (!body) co_return to_answer(http::problem_of(body.error()));
  const auto question = parse_question(body->bytes());
  if (!question) co_return invalid(question.error());
  auto explaining = parts.explain(*question);
  const auto explained = co_await std::move(explaining);
  if (explained) co_return json_answer(explanation_page(*explained));
  if (explained.error().store) co_return store_trouble(*explained.error().store);
  co_return invalid(explained.error().wrong);
}

}  // namespace idem::admin
