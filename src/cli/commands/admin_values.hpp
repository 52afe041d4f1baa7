#pragma once

#include <string>

/// What the admin listener would refuse is refused by the command, also where none answers. Empty:
/// it takes the value; otherwise a sentence.
namespace idem::cli {

/// Of a record, a message, a job or an approval: 32 hexadecimal digits, in lower case.
std::string why_no_id(const std::string& value);

/// An age or an RFC 3339 time.
std::string why_no_age(const std::string& value);

/// An RFC 3339 time.
std::string why_no_time(const std::string& value);

}  // namespace idem::cli
