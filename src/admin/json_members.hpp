#pragma once

#include "json/writer.hpp"

#include <idem/record.hpp>

#include <optional>
#include <string_view>

/// Members that several pages of the admin API have.
namespace idem::admin {

/// RFC 3339, in UTC; null without a moment.
void write_moment(json::Writer& out, std::string_view name, const std::optional<StoreTime>& moment);

}  // namespace idem::admin
