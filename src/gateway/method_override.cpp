#include "gateway/method_override.hpp"

namespace idem::gateway {

MethodOverride override_of(const http::RequestHead& head) {
  MethodOverride asked;
  for (const auto& field : head.fields) {
    if (field.known == http::FieldName::other && MethodOverride::is_field(field.name)) {
      asked.add_field(field.name, field.value);
    }
  }
  const auto query = head.origin_form.find('?');
  if (query != head.origin_form.npos) asked.add_query(head.origin_form.substr(query + 1));
  return asked;
}

std::optional<http::Refusal> refused_by_override(const MethodOverride& asked,
                                                 const http::RequestHead& head,
                                                 const GatewaySettings& settings,
                                                 const Route& route) {
  if (!asked.asked()) return std::nullopt;
  if (!route.allow_method_override) return method_override_refusal;
  if (!asked.is_clear()) return unclear_override_refusal;
  const Route& other = settings.routes.find(asked.method(), http::path_of(head.origin_form));
  if (!other.allow_method_override) return method_override_refusal;
  return std::nullopt;
}

}  // namespace idem::gateway
