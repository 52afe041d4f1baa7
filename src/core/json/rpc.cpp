#include "core/json/rpc.hpp"

#include "core/bytes/ascii.hpp"
#include "core/json/scalars.hpp"

#include <idem/json.hpp>

#include <algorithm>

namespace idem {
namespace {

using RpcMembers = std::vector<JsonMember>;

std::string_view value_of(const RpcMembers& members, std::string_view name) {
  const auto found = std::ranges::find_if(
      members, [&](const JsonMember& member) { return scalar_of(member.name) == name; });
  return found == members.end() ? std::string_view() : found->value;
}

std::optional<RpcMembers> message_of(std::string_view body) {
  if (body.size() > rpc_body_bytes_max || !check_json(body)) return std::nullopt;
  auto members = members_of(body);
  if (!members) return std::nullopt;
  const std::string_view version = value_of(*members, "jsonrpc");
  if (!version.starts_with('"') || scalar_of(version) != "2.0") return std::nullopt;
  return members;
}

std::optional<std::string_view> id_of(const RpcMembers& members) {
  const std::string_view id = value_of(members, "id");
  if (id.empty() || id.size() > rpc_id_bytes_max) return std::nullopt;
  const bool is_given = id.front() == '"' || id.front() == '-' || is_digit(id.front());
  return is_given ? std::optional(id) : std::nullopt;
}

}  // namespace

std::optional<std::string_view> rpc_call_id(std::string_view body) {
  const auto members = message_of(body);
  return members ? id_of(*members) : std::nullopt;
}

std::optional<std::string_view> rpc_answer_id(std::string_view body) {
  const auto members = message_of(body);
  if (!members || members->size() != 3) return std::nullopt;
  const bool says_one =
      !value_of(*members, "result").empty() || !value_of(*members, "error").empty();
  return says_one ? id_of(*members) : std::nullopt;
}

bool same_rpc_id(std::string_view one, std::string_view other) {
  const auto a = fingerprint_form(one);
  const auto b = fingerprint_form(other);
  return a && b && *a == *b;
}

std::optional<std::string> with_rpc_id(std::string_view answer, std::string_view id) {
  const auto its = rpc_answer_id(answer);
  if (!its || same_rpc_id(*its, id)) return std::nullopt;
  const auto begin = static_cast<std::size_t>(its->data() - answer.data());
  std::string own;
  own.reserve(answer.size() + id.size());
  own += answer.substr(0, begin);
  own += id;
  own += answer.substr(begin + its->size());
  return own;
}

}  // namespace idem
