#pragma once

#include <string>
#include <system_error>
#include <vector>

/// What the stores do with folders. A loop of std::filesystem throws where the disk fails within
/// the folder, and a start must end with a sentence then.
namespace idem {

/// The names in a folder, in their order. `code`: why some may be missing; they are not all.
std::vector<std::string> names_in(const std::string& folder, std::error_code& code);
/// The paths of all that is below it, likewise; it follows no link.
std::vector<std::string> paths_below(const std::string& folder, std::error_code& code);

/// The bytes of a file, or the names in a folder, are durable when this returns. False: see errno.
[[nodiscard]] bool make_durable(const std::string& path);

}  // namespace idem
