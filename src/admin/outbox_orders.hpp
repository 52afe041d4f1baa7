#pragma once

#include <idem/outbox.hpp>

#include <expected>
#include <string>
#include <string_view>

namespace idem::admin {

/// What an operator orders about dead letters, as JSON; as orders.hpp.
std::expected<Redrive, std::string> parse_redrive(std::string_view body);
std::expected<Discard, std::string> parse_discard(std::string_view body);

/// `GET /v1/outbox?...`
std::expected<MessageFilter, std::string> parse_messages_query(std::string_view query,
                                                               bool takes_state);

}  // namespace idem::admin
