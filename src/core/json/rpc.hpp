#pragma once

#include <idem/limits.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// JSON-RPC 2.0, as far as a retry needs it: its `id` is new, and all else is the same.
namespace idem {

/// Calls and answers are read on the loop for their ids, as long as a loop may digest.
inline constexpr std::size_t rpc_body_bytes_max = limits::digest_on_loop_bytes_max;
/// An id is a number or a UUID; this leaves room for a longer text.
inline constexpr std::size_t rpc_id_bytes_max = 256;

/// The bytes of `id` in `body`, if that is one call: an object with `"jsonrpc": "2.0"` and an id
/// that is a string or a number. None: no JSON, a batch, a notification, an id above
/// rpc_id_bytes_max or a body above rpc_body_bytes_max.
std::optional<std::string_view> rpc_call_id(std::string_view body);

/// The same of an answer, which has nothing else but either a result or an error. A signature over
/// the answer would be another member, and it would not hold for another id.
std::optional<std::string_view> rpc_answer_id(std::string_view body);

/// One value, in whatever spelling. Both are ids of the above.
bool same_rpc_id(std::string_view one, std::string_view other);

/// `answer` under the id of another call; all other bytes stay. None: it has that id already, or
/// none of rpc_answer_id().
std::optional<std::string> with_rpc_id(std::string_view answer, std::string_view id);

}  // namespace idem
