#pragma once

#include "check/verdict.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Requests and answers in few lines. All lines are printable.
namespace idem::check {

/// "POST /payments HTTP/1.1", "HTTP/1.1 201 Created"; at most 200 bytes of it.
std::string first_line_of(std::string_view message);

/// The first line, the fields that a finding is about, and the beginning of the body as one line.
/// These fields are: those about idempotency, those with a key of this run, Location, Retry-After,
/// and those that the finding's detail names.
std::vector<std::string> lines_that_matter(std::string_view message, const Report& report,
                                           const CaseResult& finding);

}  // namespace idem::check
