// JSON-RPC ids (protocol.md §10, §14). An id is a part of its message; an answer under another id
// differs in these bytes alone, and the way back leads to the first answer.
#include "core/json/rpc.hpp"

#include "core/fingerprint/body_form.hpp"
#include "fuzz/check.hpp"
#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"

#include <array>
#include <string>

namespace idem::fuzz {
namespace {

bool is_part_of(std::string_view part, std::string_view whole) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

void check_answer(std::string_view answer, std::string_view own) {
  for (const std::string_view id : {R"("a-new-id")", "7", "-0.5e3"}) {
    const auto other = with_rpc_id(answer, id);
    check(other.has_value() != same_rpc_id(own, id), "only another id changes an answer");
    if (!other) continue;
    const auto read = rpc_answer_id(*other);
    check(read && *read == id, "it has that id");
    const auto before = static_cast<std::size_t>(own.data() - answer.data());
    check(other->substr(0, before) == answer.substr(0, before) &&
              other->substr(before + id.size()) == answer.substr(before + own.size()),
          "all other bytes stay");
    check(with_rpc_id(*other, own) == answer, "the first id makes the first answer");
  }
}

}  // namespace

void json_rpc(std::string_view input) {
  const ExactBytes body(input);
  const auto call = rpc_call_id(body.view());
  if (call) {
    check(is_part_of(*call, body.view()), "the id is a part of the call");
    check(same_rpc_id(*call, *call), "an id is equal to itself");
  }
  if (const auto own = rpc_answer_id(body.view())) {
    check(is_part_of(*own, body.view()), "the id is a part of the answer");
    check(call && *call == *own, "an answer's id is read as a call's");
    check_answer(body.view(), *own);
  }
  const std::string made = R"({"jsonrpc":"2.0","result":[],"id":)" + std::string(input) + "}";
  if (const auto own = rpc_answer_id(ExactBytes(made).view())) {
    check(own->size() <= rpc_id_bytes_max, "an id is short");
  }
  if (const auto own = rpc_answer_id(made)) check_answer(made, *own);
}

}  // namespace idem::fuzz
