#pragma once

#include "config/setting.hpp"

#include <string>
#include <vector>

namespace idem::cli {

/// Makes the paths of `table` absolute, so that where a process is started decides about none that
/// stands in a file: such a one is taken from that file's folder, one of a flag or a variable from
/// the working directory, and a default, which nobody gave, from `folder` (empty: the working
/// directory).
void make_paths_absolute(const std::vector<config::Setting>& table, const std::string& folder = {});

/// The folder of the file at `path`.
std::string folder_of(const std::string& path);

}  // namespace idem::cli
