#pragma once

#include <string_view>

#include "ledger.hpp"
#include "message.hpp"

namespace provider {

/// What a provider gives its customers to compare their books with: GET /export.
Reply export_of(std::string_view target, const Ledger& ledger);

}  // namespace provider
