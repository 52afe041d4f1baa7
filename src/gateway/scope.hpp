#pragma once

#include "gateway/settings.hpp"

#include <idem/fingerprint.hpp>

#include <optional>

namespace idem::gateway {

/// Who the request belongs to. None: the source field is absent, empty, too long or has more than
/// one line (§9); then nothing may be stored or run.
std::optional<std::string> scope_of(const http::RequestHead& head, const ScopeSource& source,
                                    const Secret& secret);

}  // namespace idem::gateway
