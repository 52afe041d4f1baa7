#pragma once

#include "config/setting.hpp"

#include <string>
#include <vector>

namespace idem::cli {

/// Makes the paths of `table` absolute. A path in a file is relative to that file's folder, a path
/// of a flag or variable to the working directory, and a default to `folder` (empty: the working
/// directory).
void make_paths_absolute(const std::vector<config::Setting>& table, const std::string& folder = {});

/// The folder of the file at `path`.
std::string folder_of(const std::string& path);

}  // namespace idem::cli
