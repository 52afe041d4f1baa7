#pragma once

#include "admin/admin.hpp"

#include <expected>
#include <string>
#include <string_view>

namespace idem::admin {

/// The request in question, as JSON: `{"method","target","headers":[["name","value"]],"body_b64"}`
/// and, if named, `"scope"`. The error names the place and says what to write.
std::expected<RequestInQuestion, std::string> parse_question(std::string_view body);

/// The answer as JSON. Of the record the members of a listing.
std::string explanation_page(const Explanation& explanation);

/// `POST /v1/explain`. Both arguments outlive the task; the client's loop's thread.
Task<WireAnswer> explain_to(const AdminParts& parts, http::ServerStream& client);

}  // namespace idem::admin
