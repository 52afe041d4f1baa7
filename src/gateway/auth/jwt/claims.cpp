#include "gateway/auth/jwt/claims.hpp"

#include <idem/json.hpp>

#include <boost/json.hpp>

namespace idem::gateway {

namespace json = boost::json;

struct JsonObject::Members {
  json::object values;
};

JsonObject::JsonObject(std::unique_ptr<Members> members) : members_(std::move(members)) {}
JsonObject::JsonObject(JsonObject&&) noexcept = default;
JsonObject& JsonObject::operator=(JsonObject&&) noexcept = default;
JsonObject::~JsonObject() = default;

std::optional<JsonObject> JsonObject::parse(std::string_view text) {
  // The strict reader decides what is JSON: Boost's would accept the last of two equal names.
  const auto strict = canonicalize(text);
  if (!strict) return std::nullopt;
  json::error_code error;
  auto value = json::parse(json::string_view(strict->data(), strict->size()), error);
  if (error || !value.is_object()) return std::nullopt;
  return JsonObject(std::make_unique<Members>(std::move(value.get_object())));
}

namespace {

std::string text_of(const json::string& value) { return {value.data(), value.size()}; }

const json::value* find(const json::object& object, std::string_view name) {
  return object.if_contains(json::string_view(name.data(), name.size()));
}

}  // namespace

bool JsonObject::has(std::string_view name) const {
  return find(members_->values, name) != nullptr;
}

std::optional<std::string> JsonObject::text(std::string_view name) const {
  const auto* value = find(members_->values, name);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return text_of(value->get_string());
}

std::optional<double> JsonObject::number(std::string_view name) const {
  const auto* value = find(members_->values, name);
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return static_cast<double>(value->get_int64());
  if (value->is_uint64()) return static_cast<double>(value->get_uint64());
  if (value->is_double()) return value->get_double();
  return std::nullopt;
}

std::optional<std::vector<std::string>> JsonObject::texts(std::string_view name) const {
  if (auto one = text(name)) return std::vector<std::string>{std::move(*one)};
  const auto* value = find(members_->values, name);
  if (value == nullptr || !value->is_array()) return std::nullopt;
  std::vector<std::string> all;
  for (const auto& element : value->get_array()) {
    if (!element.is_string()) return std::nullopt;
    all.push_back(text_of(element.get_string()));
  }
  return all;
}

std::optional<std::vector<JsonObject>> JsonObject::objects(std::string_view name) const {
  const auto* value = find(members_->values, name);
  if (value == nullptr || !value->is_array()) return std::nullopt;
  std::vector<JsonObject> all;
  for (const auto& element : value->get_array()) {
    if (!element.is_object()) return std::nullopt;
    all.push_back(JsonObject(std::make_unique<Members>(element.get_object())));
  }
  return all;
}

}  // namespace idem::gateway
