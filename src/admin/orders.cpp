#include "admin/orders.hpp"

#include "admin/order_reading.hpp"
#include "core/bytes/base64.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/exchange/policy.hpp"
#include "core/record/sealed_parts.hpp"
#include "http/head.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::admin {
namespace {

Read<Resolve::As> read_as(const Value& object) {
  const auto text = read_text(object, "as", limits::reason_bytes_max);
  if (!text) return std::unexpected(text.error());
  if (*text == "completed") return Resolve::As::completed;
  if (*text == "failed_retryable") return Resolve::As::failed_retryable;
  return wrong("/as", "must be completed or failed_retryable");
}

Read<Fence> read_fence(const Value& object) {
  const auto* value = object.find("fence");
  if (value == nullptr) return wrong("/fence", "is missing");
  if (const auto* number = std::get_if<std::int64_t>(&value->is);
      number != nullptr && *number > 0) {
    return static_cast<Fence>(*number);
  }
  if (const auto* number = std::get_if<std::uint64_t>(&value->is); number != nullptr)
    return *number;
  return wrong("/fence",
               "must be a whole number above 0: the fence of the attempt that you decide about");
}

/// One `["name","value"]`; the same fields are allowed as in an answer of the upstream.
Read<Field> read_field(const Value& value, const std::string& where) {
  const auto* pair = std::get_if<json::Array>(&value.is);
  const bool is_pair = pair != nullptr && pair->size() == 2 &&
                       std::holds_alternative<std::string>((*pair)[0].is) &&
                       std::holds_alternative<std::string>((*pair)[1].is);
  if (!is_pair) return wrong(where, "must be [\"name\",\"value\"]");
  Field field{std::get<std::string>((*pair)[0].is), std::get<std::string>((*pair)[1].is)};
  if (!http::is_token(field.name)) return wrong(where + "/0", "is no field name");
  if (!http::is_field_value(field.value)) return wrong(where + "/1", "is no field value");
  const bool is_ours = is_reserved_field(field.name) || equal_names(field.name, "Content-Length");
  if (is_ours || !may_store(field.name)) {
    return wrong(where + "/0", "is a field that is never stored with an answer");
  }
  return field;
}

Read<std::vector<Field>> read_fields(const Value& response) {
  std::vector<Field> fields;
  const auto* value = response.find("headers");
  if (value == nullptr) return fields;
  const auto* items = std::get_if<json::Array>(&value->is);
  if (items == nullptr) return wrong("/response/headers", "must be an array of pairs");
  std::size_t bytes = 0;
  for (const auto& item : *items) {
    auto field = read_field(item, "/response/headers/" + std::to_string(fields.size()));
    if (!field) return std::unexpected(field.error());
    bytes += field->name.size() + field->value.size();
    fields.push_back(std::move(*field));
    if (fields.size() > limits::head_fields_max || bytes > limits::head_bytes_max) {
      return wrong("/response/headers", "are more than one answer may have");
    }
  }
  return fields;
}

Read<int> read_status(const Value& response) {
  const auto* value = response.find("status");
  const auto* number = value != nullptr ? std::get_if<std::int64_t>(&value->is) : nullptr;
  if (number == nullptr || *number < 200 || *number > 599) {
    return wrong("/response/status", "must be a whole number from 200 to 599");
  }
  return static_cast<int>(*number);
}

Read<std::optional<StoredResponse>> read_response(const Value& object) {
  const auto* value = object.find("response");
  if (value == nullptr) return std::nullopt;
  const auto* members = std::get_if<json::Object>(&value->is);
  if (members == nullptr) return wrong("/response", "must be an object");
  for (const auto& [name, unused] : *members) {
    if (name != "status" && name != "headers" && name != "body_b64") {
      return wrong("/response", "has a member that is none of status, headers, body_b64");
    }
  }
  StoredResponse response;
  const auto status = read_status(*value);
  if (!status) return std::unexpected(status.error());
  response.status = *status;
  auto fields = read_fields(*value);
  if (!fields) return std::unexpected(fields.error());
  response.headers = std::move(*fields);
  if (const auto* body = value->find("body_b64")) {
    const auto* text = std::get_if<std::string>(&body->is);
    auto bytes = text != nullptr ? from_base64(*text) : std::nullopt;
    if (!bytes) return wrong("/response/body_b64", "must be base64 (RFC 4648, with padding)");
    response.body = std::move(*bytes);
  }
  const bool has_no_body =
      response.status == 204 || response.status == 205 || response.status == 304;
  if (has_no_body && !response.body.empty()) {
    return wrong("/response/body_b64", "must be empty: an answer of this status has no body");
  }
  return response;
}

}  // namespace

std::expected<std::optional<StoreTime>, std::string> read_observed_at(const Value& object) {
  const auto* value = object.find("observed_at");
  if (value == nullptr) return std::nullopt;
  const auto* text = std::get_if<std::string>(&value->is);
  const auto moment = text != nullptr ? parse_rfc3339(*text) : std::nullopt;
  if (!moment) return wrong("/observed_at", "must be an RFC 3339 time");
  if (*moment < StoreTime{}) return wrong("/observed_at", "must not lie before 1970");
  return moment;
}

std::optional<std::string> why_incomparable(StoreTime observed_at, StoreTime now, StoreTime wall) {
  const Millis apart = std::chrono::abs(wall - now);
  if (apart > limits::store_clock_apart_max) {
    return "/observed_at: the store's clock and this machine's are " +
           std::to_string(std::chrono::ceil<std::chrono::seconds>(apart).count()) +
           " seconds apart, so it cannot be compared; look again and leave it out";
  }
  if (observed_at > now)
    return "/observed_at: lies in the future; the store's time is " + to_rfc3339(now);
  return std::nullopt;
}

std::expected<Resolve, std::string> read_resolve(const Value& object) {
  const auto as = read_as(object);
  if (!as) return std::unexpected(as.error());
  auto evidence = read_text(object, "evidence", limits::evidence_bytes_max);
  if (!evidence) return std::unexpected(evidence.error());
  if (is_sealed_evidence(*evidence)) {
    return wrong("/evidence", "must not begin as the encrypted texts of the log do");
  }
  auto reason = read_reason(object);
  if (!reason) return std::unexpected(reason.error());
  auto response = read_response(object);
  if (!response) return std::unexpected(response.error());
  if (*response && *as != Resolve::As::completed) {
    return wrong("/response", "belongs to as: completed only");
  }
  Resolve verb;
  verb.as = *as;
  verb.evidence = std::move(*evidence);
  verb.reason = std::move(*reason);
  verb.response = std::move(*response);
  return verb;
}

std::expected<ResolveOrder, std::string> parse_resolve(std::string_view body) {
  const auto object =
      read_object(body, {"as", "fence", "evidence", "reason", "response", "observed_at", "by"});
  if (!object) return std::unexpected(object.error());
  auto verb = read_resolve(*object);
  if (!verb) return std::unexpected(verb.error());
  const auto fence = read_fence(*object);
  if (!fence) return std::unexpected(fence.error());
  const auto observed_at = read_observed_at(*object);
  if (!observed_at) return std::unexpected(observed_at.error());
  verb->fence = *fence;
  return ResolveOrder{std::move(*verb), *observed_at};
}

std::expected<std::vector<NamedKey>, std::string> parse_named_keys(std::string_view body) {
  const auto object = read_object(body, {"keys"});
  if (!object) return std::unexpected(object.error());
  const auto* value = object->find("keys");
  const auto* items = value != nullptr ? std::get_if<json::Array>(&value->is) : nullptr;
  if (items == nullptr || items->size() > limits::list_page_max) {
    return wrong("/keys", "must be an array of 1000 objects at most");
  }
  std::vector<NamedKey> keys;
  for (const Value& item : *items) {
    const std::string where = "/keys/" + std::to_string(keys.size());
    const auto text = [&](std::string_view name) {
      const Value* const member = item.find(name);
      return member != nullptr ? std::get_if<std::string>(&member->is) : nullptr;
    };
    const auto* scope = text("scope");
    const auto* operation = text("operation");
    const auto* key = text("key");
    if (scope == nullptr || operation == nullptr || key == nullptr) {
      return wrong(where, "must have scope, operation and key, each a string");
    }
    if (key->empty() || key->size() > limits::key_bytes_max) {
      return wrong(where + "/key", "must have 1 to 255 bytes");
    }
    keys.push_back({*scope, *operation, *key});
  }
  return keys;
}

std::expected<CacheBust, std::string> parse_release(std::string_view body) {
  const auto object = read_object(body, {"fence", "reason", "by"});
  if (!object) return std::unexpected(object.error());
  const auto fence = read_fence(*object);
  if (!fence) return std::unexpected(fence.error());
  auto reason = read_reason(*object);
  if (!reason) return std::unexpected(reason.error());
  CacheBust verb;
  verb.fence = *fence;
  verb.reason = std::move(*reason);
  return verb;
}

}  // namespace idem::admin
