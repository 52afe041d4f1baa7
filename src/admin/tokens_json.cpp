#include "admin/tokens_json.hpp"

#include "json/writer.hpp"

namespace idem::admin {

using json::Writer;

std::string tokens_page(std::span<const TokenEntry> tokens) {
  Writer out;
  out.begin_object();
  out.name("tokens");
  out.begin_array();
  for (const TokenEntry& one : tokens) {
    out.begin_object();
    out.member("name", one.name);
    out.member("role", name_of(one.role));
    out.member("made_at", one.made_at);
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return out.take() + "\n";
}

std::string token_page(std::string_view name, Role role, std::string_view token) {
  Writer out;
  out.begin_object();
  out.member("name", name);
  out.member("role", name_of(role));
  out.member("token", token);
  out.end_object();
  return out.take() + "\n";
}

}  // namespace idem::admin
