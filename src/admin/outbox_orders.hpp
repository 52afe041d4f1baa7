#pragma once

#include <idem/outbox.hpp>

#include <expected>
#include <string>
#include <string_view>

namespace idem::admin {

/// Parses an operator's order about dead letters; rules and errors as in orders.hpp.
std::expected<Redrive, std::string> parse_redrive(std::string_view body);
std::expected<Discard, std::string> parse_discard(std::string_view body);

/// Parses the query of `GET /v1/outbox?...`; `/v1/dlq` does not accept a state.
std::expected<MessageFilter, std::string> parse_messages_query(std::string_view query,
                                                               bool accepts_state);

}  // namespace idem::admin
