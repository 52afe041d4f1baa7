#pragma once

#include "core/fingerprint/method_override.hpp"
#include "gateway/settings.hpp"
#include "http/head.hpp"

#include <optional>

namespace idem::gateway {

/// The overrides of a request's head: its fields, and the parameters of its query.
MethodOverride override_of(const http::RequestHead& head);

/// By default a request with an override is refused: its record, its rules and the need of a key
/// are those of a method that may not be the one that runs.
inline constexpr http::Refusal method_override_refusal{
    400,
    "a field or parameter asks for another method (X-HTTP-Method-Override, _method, ...): send "
    "that method itself"};
inline constexpr http::Refusal unclear_override_refusal{
    400, "the fields or parameters that override the method differ, or one is no method"};

/// Why `asked`, an override of a request on `route`, has it refused. The route that has the other
/// method has to allow it, too. None: the request has no override, or may have it.
std::optional<http::Refusal> refused_by_override(const MethodOverride& asked,
                                                 const http::RequestHead& head,
                                                 const GatewaySettings& settings,
                                                 const Route& route);

}  // namespace idem::gateway
