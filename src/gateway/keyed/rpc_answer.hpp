#pragma once

#include "core/exchange/problem.hpp"

#include <string_view>

namespace idem::gateway {

/// True if the JSON-RPC call `body` has the id of this answer, and a retry may get the answer under
/// its own id: JSON without a coding, and no field that holds for these bytes alone (a digest, a
/// signature, an entity tag).
bool answers_rpc(std::string_view body, const WireAnswer& answer);

/// Of a replay that answers_rpc: the same under `id`, the bytes of a retry's own. Does nothing
/// where that is its id.
void put_rpc_id(WireAnswer& answer, std::string_view id);

}  // namespace idem::gateway
