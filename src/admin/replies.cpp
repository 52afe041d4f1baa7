#include "admin/replies.hpp"

#include "admin/order_reading.hpp"
#include "core/bytes/json_string.hpp"
#include "core/exchange/problem.hpp"

#include <algorithm>

namespace idem::admin {

WireAnswer json_answer(std::string body) {
  WireAnswer answer{200, {}, std::move(body)};
  answer.headers.push_back({"Content-Type", "application/json"});
  answer.headers.push_back({"Cache-Control", "no-store"});
  return answer;
}

WireAnswer invalid(std::string detail, std::optional<int> status) {
  return to_answer(
      {.code = ProblemCode::invalid_request, .detail = std::move(detail), .status = status});
}

WireAnswer not_allowed(std::string_view methods) {
  WireAnswer answer = invalid("Only " + std::string(methods) + " is served here.", 405);
  answer.headers.push_back({"Allow", std::string(methods)});
  return answer;
}

WireAnswer store_trouble(const StoreError& error) {
  ProblemCode code = ProblemCode::store_unavailable;
  if (error.code == StoreError::Code::damaged) code = ProblemCode::record_damaged;
  if (error.code == StoreError::Code::unstorable) code = ProblemCode::request_not_storable;
  return to_answer({.code = code, .detail = error.detail, .operation = error.record});
}

WireAnswer state_refused(std::string detail) {
  return to_answer({.code = ProblemCode::state_refused, .detail = std::move(detail)});
}

WireAnswer refused_answer(const Problem& problem, std::string_view verdict,
                          const std::string& counts_from) {
  WireAnswer answer = to_answer(problem);
  std::string members = ",\"verdict\":" + json_string(verdict);
  if (!counts_from.empty()) members += ",\"counts_from\":" + json_string(counts_from);
  answer.body.insert(answer.body.rfind('}'), members);
  return answer;
}

bool is_json(const http::RequestHead& head) {
  std::size_t found = 0;
  bool good = false;
  for (const auto& field : head.fields) {
    if (field.known != http::FieldName::content_type) continue;
    auto media_type = field.value.substr(0, field.value.find(';'));
    while (media_type.ends_with(' ')) media_type.remove_suffix(1);
    good = http::same_name(media_type, "application/json");
    ++found;
  }
  return found == 1 && good;
}

std::optional<std::string> source_of(const http::RequestHead& head, const Caller& caller) {
  std::string source(operator_source);
  if (!caller.name.empty()) return source + ':' + caller.name;
  bool named = false;
  for (const auto& field : head.fields) {
    if (!http::same_name(field.name, "Idem-Operator")) continue;
    if (named || !is_operator_name(field.value)) return std::nullopt;
    named = true;
    source += ':' + std::string(field.value);
  }
  return source;
}

}  // namespace idem::admin
