#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "cli/command_line/command.hpp"
#include "cli/commands/config_command.hpp"
#include "support/external_data.hpp"
#include "support/temp_dir.hpp"

namespace idem::test {

inline std::filesystem::path corpus(std::string_view part) {
  return std::filesystem::path(IDEM_SOURCE_DIR) / "tests/config" / part;
}

/// The files of a folder, in order.
inline std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

/// The options that `idem gateway ARGUMENTS...` would run with.
inline std::expected<cli::ReadSettings, std::vector<std::string>> read_settings(
    std::vector<std::string> arguments) {
  cli::CommandLine line;
  const cli::SettingsSource source(line);
  if (const auto asked = line.parse(std::move(arguments)); !asked) {
    return std::unexpected(std::vector<std::string>{"usage: " + asked.error()});
  }
  return source.read();
}

inline auto read_config(const std::filesystem::path& file) {
  return read_settings({"--config", file.string()});
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines) out += line + '\n';
  return out;
}

}  // namespace idem::test
