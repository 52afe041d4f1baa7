#pragma once

#include <string>

namespace idem::cli {

/// One approval, and a page of approvals, as tables. False: this is none of the admin API.
bool print_approval(const std::string& json);
bool print_approvals(const std::string& json);

}  // namespace idem::cli
