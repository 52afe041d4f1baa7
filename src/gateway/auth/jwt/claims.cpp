#include "gateway/auth/jwt/claims.hpp"

#include <idem/limits.hpp>

namespace idem::gateway {

std::optional<JsonObject> JsonObject::parse(std::string_view text) {
  auto value = json::parse(text, limits::jwt_depth_max);
  if (!value || !std::holds_alternative<json::Object>(value->is)) return std::nullopt;
  return JsonObject(std::move(*value));
}

template <class T>
const T* JsonObject::find(std::string_view name) const noexcept {
  const json::Value* const value = object_.find(name);
  return value == nullptr ? nullptr : std::get_if<T>(&value->is);
}

std::optional<std::string> JsonObject::text(std::string_view name) const {
  const auto* const text = find<std::string>(name);
  return text == nullptr ? std::nullopt : std::optional(*text);
}

std::optional<double> JsonObject::number(std::string_view name) const {
  if (const auto* const whole = find<std::int64_t>(name)) return static_cast<double>(*whole);
  if (const auto* const whole = find<std::uint64_t>(name)) return static_cast<double>(*whole);
  if (const auto* const real = find<double>(name)) return *real;
  return std::nullopt;
}

std::optional<std::vector<std::string>> JsonObject::texts(std::string_view name) const {
  if (auto one = text(name)) return std::vector<std::string>{std::move(*one)};
  const auto* const items = find<json::Array>(name);
  if (items == nullptr) return std::nullopt;
  std::vector<std::string> all;
  for (const auto& item : *items) {
    const auto* const text = std::get_if<std::string>(&item.is);
    if (text == nullptr) return std::nullopt;
    all.push_back(*text);
  }
  return all;
}

std::optional<std::vector<JsonObject>> JsonObject::objects(std::string_view name) const {
  const auto* const items = find<json::Array>(name);
  if (items == nullptr) return std::nullopt;
  std::vector<JsonObject> all;
  for (const auto& item : *items) {
    if (!std::holds_alternative<json::Object>(item.is)) return std::nullopt;
    all.push_back(JsonObject(item));
  }
  return all;
}

}  // namespace idem::gateway
