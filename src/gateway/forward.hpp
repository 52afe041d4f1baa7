#pragma once

#include "core/exchange/exchange.hpp"
#include "gateway/settings.hpp"
#include "tracing/trace.hpp"

#include <string>

/// Message heads on their way through: which fields pass, which stop here, which are added.
namespace idem::gateway {

/// Whether the key's field is kept, renamed or dropped.
enum class ForwardedKey : std::uint8_t { by_settings, as_it_came };

/// The request head for the upstream, up to where framing and our own fields follow; without the
/// final empty line. Path and query bytes are the client's (P3). The client's Host is kept. Via is
/// added to. With `trace` its traceparent replaces the client's.
void append_forwarded_head(std::string& out, const http::RequestHead& head,
                           const GatewaySettings& settings,
                           ForwardedKey forwarded = ForwardedKey::by_settings,
                           const std::optional<tracing::Outgoing>& trace = {});

/// True for a field that may carry a key.
bool is_key_field(std::string_view name, const GatewaySettings& settings) noexcept;
/// True also for one that a server may confuse with such a field (http::alike).
bool is_like_key_field(std::string_view name, const GatewaySettings& settings) noexcept;

/// True for a field of the client's that `trace` replaces. Who begins a trace must not pass a
/// tracestate on (W3C Trace Context §3.3).
bool is_replaced(std::string_view name, const std::optional<tracing::Outgoing>& trace) noexcept;

/// True when this request has passed a gateway of this name before.
bool passed_before(const http::RequestHead& head, std::string_view via_name);

/// `Idem-Operation`, `Idem-Fence`, `Idem-Attempt`: with them a service can take part.
void append_attempt_fields(std::string& out, const Attempt& attempt, const RecordId& id);

void append_content_length(std::string& out, std::uint64_t length);

/// RFC 9110 §6.6.1: a recipient that stores or forwards a response without Date adds the time of
/// its arrival. Call it before the response is stored, so that a replay carries the same (P32).
void add_date(WireAnswer& answer);

/// The end-to-end part of the upstream's head; `Idem-Outcome` and `Idem-Reference` are taken out.
UpstreamAnswered end_to_end(const http::ResponseHead& head);

}  // namespace idem::gateway
