#include "http/head.hpp"
#include "http/head_fields.hpp"

#include <algorithm>

namespace idem::http {
namespace {

bool stops_here(FieldName name) noexcept {
  switch (name) {
    case FieldName::connection:
    case FieldName::content_length:
    case FieldName::keep_alive:
    case FieldName::proxy_connection:
    case FieldName::te:
    case FieldName::trailer:
    case FieldName::transfer_encoding:
    case FieldName::upgrade:
      return true;
    case FieldName::other:
    case FieldName::authorization:
    case FieldName::content_type:
    case FieldName::expect:
    case FieldName::host:
    case FieldName::idempotency_key:
    case FieldName::location:
    case FieldName::retry_after:
    case FieldName::via:
      return false;
  }
  return false;
}

/// A field from a store has not been through the parser, so `other` says nothing about it.
FieldName name_of(const FieldView& field) noexcept {
  return field.known != FieldName::other ? field.known : known_field(field.name);
}

}  // namespace

HopByHop::HopByHop(const std::vector<FieldView>& fields) {
  for (const FieldView& field : fields) {
    if (name_of(field) != FieldName::connection) continue;
    each_list_member(field.value, [this](std::string_view option) {
      // An option that names no field, or one that is dropped anyway, is not kept: the usual
      // Connection field then costs no allocation.
      if (same_name(option, "close") || stops_here(known_field(option))) return;
      named_.push_back(option);
    });
  }
}

bool HopByHop::drops(const FieldView& field) const noexcept {
  if (stops_here(name_of(field))) return true;
  return std::any_of(named_.begin(), named_.end(),
                     [&](std::string_view named) { return same_name(named, field.name); });
}

}  // namespace idem::http
