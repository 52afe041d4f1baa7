#pragma once

#include "admin/admin.hpp"
#include "metrics/shadow.hpp"

#include <string>

namespace idem::admin {

/// The report as JSON. `with_examples`: they name paths and the records' references.
std::string shadow_page(const metrics::ShadowReport& report, bool with_examples);

/// `GET /v1/shadow`, perhaps of one `route`. A viewer gets no examples.
WireAnswer shadow_answer(const AdminParts& parts, const http::RequestHead& head, Role role);

}  // namespace idem::admin
