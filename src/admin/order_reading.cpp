#include "admin/order_reading.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::admin {

std::unexpected<std::string> wrong(std::string_view where, std::string_view what) {
  return std::unexpected(std::string(where) + ": " + std::string(what));
}

Read<Value> read_object(std::string_view body, std::initializer_list<std::string_view> known) {
  auto value = json::parse(body);
  if (!value) {
    return wrong("byte " + std::to_string(value.error().offset), value.error().what);
  }
  const auto* members = std::get_if<json::Object>(&value->is);
  if (members == nullptr) return wrong("body", "must be a JSON object");
  for (const auto& member : *members) {
    if (std::ranges::find(known, member.name) != known.end()) continue;
    std::string names;
    for (const auto name : known) names += (names.empty() ? "" : ", ") + std::string(name);
    return wrong("body", "has a member that is none of " + names);
  }
  return std::move(*value);
}

Read<std::string> read_text(const Value& object, std::string_view name, std::size_t bytes_max) {
  const std::string where = "/" + std::string(name);
  const auto* value = object.find(name);
  if (value == nullptr) return wrong(where, "is missing");
  const auto* text = std::get_if<std::string>(&value->is);
  if (text == nullptr) return wrong(where, "must be a string");
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) return wrong(where, "is empty");
  if (text->size() > bytes_max) {
    return wrong(where, "is longer than " + std::to_string(bytes_max) + " bytes");
  }
  return *text;
}

Read<std::string> read_reason(const Value& object) {
  auto reason = read_text(object, "reason", limits::reason_bytes_max);
  if (!reason) return reason;
  for (const std::string_view note : {"(job ", "(approved by "}) {
    if (reason->contains(note)) {
      return wrong("/reason", "has \"" + std::string(note) +
                                  "\" in it, which only jobs and "
                                  "approvals write");
    }
  }
  return reason;
}

Read<std::string> decided_by(std::string source, std::string_view body) {
  const auto value = json::parse(body);
  const Value* const by = value ? value->find("by") : nullptr;
  if (by == nullptr && source != operator_source) return source;
  if (!value) return wrong("byte " + std::to_string(value.error().offset), value.error().what);
  if (by == nullptr) {
    return wrong("/by", "is missing, and so is the field Idem-Operator; say by name who decides");
  }
  const auto* name = std::get_if<std::string>(&by->is);
  if (name == nullptr || !is_operator_name(*name)) {
    return wrong("/by", "must be one name of 1 to 64 visible characters");
  }
  const std::string named = std::string(operator_source) + ':' + *name;
  if (source != operator_source && source != named) {
    return wrong("/by", "differs from the name of the login, or else from the field Idem-Operator");
  }
  return named;
}

Read<std::string> parse_reason(std::string_view body) {
  const auto object = read_object(body, {"reason", "by"});
  if (!object) return std::unexpected(object.error());
  return read_reason(*object);
}

}  // namespace idem::admin
