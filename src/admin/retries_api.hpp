#pragma once

#include "admin/admin.hpp"

#include <string_view>

namespace idem::admin {

/// `GET /v1/retries`: the newest retries of this process, perhaps of one record or with one
/// outcome. `query`: behind the question mark.
WireAnswer retries_answer(const metrics::Retries& retries, std::string_view query);

}  // namespace idem::admin
