#pragma once

#include <idem/fingerprint.hpp>

#include <expected>
#include <string>

namespace idem::cli {

/// The secret from a file of key material: limits::secret_file_bytes_min to ..._max bytes, and no
/// other user may read or change the file. The error names the file and never quotes its content.
std::expected<Secret, std::string> read_secret_file(const std::string& path);
/// Checks owner and mode of any other file with a secret in the same way.
std::expected<void, std::string> check_secret_file(const std::string& path);

}  // namespace idem::cli
