#pragma once

#include "admin/login/role.hpp"

#include <idem/outbox.hpp>

#include <optional>
#include <span>
#include <string>

namespace idem::admin {

/// A page of messages; the following page begins after `next`.
std::string messages_page(std::span<const StoredMessage> messages,
                          const std::optional<std::int64_t>& next);
/// One message with its payload and history.
std::string message_page(const StoredMessage& message, Bodies bodies);
std::string ordered_page(std::span<const Ordered> ordered, bool dry_run);

}  // namespace idem::admin
