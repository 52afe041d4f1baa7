#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "support/http_client.hpp"

namespace idem::test {

/// Succeeds when `response` is a problem of ours with this status and code: media type, members and
/// their types, the schema of RFC 9457 (where the outside data is present), `status` equal to the
/// status line, and no member that is null.
testing::AssertionResult is_problem(const Response& response, int status, std::string_view code);

/// The text of one member of a JSON body; empty when it is not there or no string.
std::string json_text(std::string_view body, std::string_view member);

}  // namespace idem::test
