#include "core/json/place.hpp"

#include "core/json/scalars.hpp"

namespace idem {

bool is_json_pointer(std::string_view text) { return JsonPointer::parse(text).has_value(); }

std::optional<std::string_view> json_at(std::string_view json, std::string_view pointer) {
  const auto parsed = JsonPointer::parse(pointer);
  return parsed ? parsed->find(json) : std::nullopt;
}

std::string json_plain(std::string_view value) {
  return scalar_of(value).value_or(std::string(value));
}

}  // namespace idem
