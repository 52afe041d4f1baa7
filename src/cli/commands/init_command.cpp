#include "cli/commands/init_command.hpp"

#include "admin/login/small_file.hpp"
#include "cli/commands/admin_client.hpp"
#include "cli/commands/check_report.hpp"
#include "cli/commands/next_commands.hpp"
#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"
#include "cli/settings/config_check.hpp"
#include "cli/settings/first_file.hpp"
#include "cli/settings/first_questions.hpp"
#include "cli/settings/paths.hpp"
#include "cli/terminal/messages.hpp"

#include <idem/assert.hpp>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <sstream>

namespace idem::cli {
namespace {

namespace fs = std::filesystem;

/// The address that the commands for operators ask by default: those printed at the end then need
/// no flag. A gateway without a file has no such listener by default.
std::string admin_default() { return AdminAccess().url.substr(std::string("http://").size()); }

/// A symbolic link counts, also one to nothing.
bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

/// A relative path of a flag begins at the working directory, one of the file at the file's folder.
void keep_meaning_of_paths(GatewayFlags& flags) {
  if (flags.folder == folder_of("idem.yaml")) return;
  auto table = settings_of(flags);
  std::erase_if(table, [](const auto& setting) { return config::given_at(setting) == nullptr; });
  make_paths_absolute(table, flags.folder);
}

/// Without complaints about `missing`.
std::vector<std::string> complaints_but(const GatewayFlags& flags,
                                        const std::vector<std::string_view>& missing) {
  auto lines = complaints_about(flags);
  std::erase_if(lines, [&](const std::string& line) {
    return std::ranges::any_of(
        missing, [&](auto flag) { return line.starts_with(std::string(flag) + ": "); });
  });
  return lines;
}

int keep_wrong_file(const std::string& file) {
  return say_error("init",
                   file +
                       " was kept. Correct what is named above, then run: idem config check "
                       "--config " +
                       file,
                   usage);
}

/// The file, what is wrong with it, and the commands to run next. The exit code.
int print_written(const SettingsSource& source, const std::string& file) {
  const auto report = report_on(source, Purpose::gateway, false);
  const auto read = source.read();
  const bool is_right = report.complaints.empty() && read;
  json::Writer out;
  out.begin_object();
  out.member("file", file);
  out.name("check");
  write_report(out, report);
  out.name("next");
  out.begin_array();
  std::istringstream lines(is_right ? next_commands(*read, file) : std::string());
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) out.text(line);
  }
  out.end_array();
  out.end_object();
  print_json(out.take());
  return is_right ? done : keep_wrong_file(file);
}

/// `idem config check` of the file, in this process. The exit code.
int check_and_tell_next(const std::string& output, bool json) {
  // A name that begins with a dash would be a flag, here and in the printed command.
  const std::string file = output.starts_with('-') ? "./" + output : output;
  CommandLine reading;
  const SettingsSource source(reading);
  const auto asked = reading.parse({"--config", file});
  IDEM_ASSERT(asked.has_value());
  if (json) return print_written(source, file);
  std::fprintf(stdout, "%s is written; idem config check says:\n", file.c_str());
  std::fflush(stdout);
  const int code = print_report(source, Purpose::gateway, false);
  const auto read = source.read();
  if (code != done || !read) return keep_wrong_file(file);
  std::printf("\nNext, the second and the third in another terminal:\n\n%s",
              next_commands(*read, file).c_str());
  return done;
}

}  // namespace

InitCommand::InitCommand(const Command& program)
    : command_(program.add_command(
          "init", "Write a first configuration file, check it and print what to run next")),
      settings_(command_, &is_of_first_file) {
  command_.add_option("-o,--output", output_, "the file to write; one that is there stays as it is")
      .show_default();
  command_.add_flag("--json", json_, json_help);
  command_.set_notes(
      "Needed: --upstream and --scope. On a terminal it asks for what is missing.\n"
      "Without --admin the file has admin: " +
      admin_default() + ", where idem status and idem keys ask by default.");
}

int InitCommand::complain(const std::string& sentence, int code) const {
  return say_error("init", sentence, code);
}

int InitCommand::ask_for_missing(GatewayFlags& flags) const {
  const auto missing = missing_flags(flags);
  if (missing.empty()) return done;
  if (::isatty(STDIN_FILENO) == 0) {
    std::string names;
    for (const auto flag : missing) names += (names.empty() ? "" : " and ") + std::string(flag);
    return complain("there is no terminal to ask on, and " + names +
                        (missing.size() == 1 ? " is" : " are") +
                        " missing; write for example: idem init --upstream http://127.0.0.1:9000 "
                        "--scope static:my-api",
                    usage);
  }
  // Before any question: a wrong flag would end the command behind the last answer.
  if (const auto wrong = complaints_but(flags, missing); !wrong.empty()) {
    return settings_.refuse("init", wrong);
  }
  // On stderr, because stdout may be redirected while a person sits at the terminal.
  if (ask_for_settings(flags, std::cin, std::cerr)) return done;
  std::fputc('\n', stderr);
  return complain("the input ended before the last answer; nothing was written", failed);
}

std::expected<GatewayFlags, int> InitCommand::settle() const {
  Complaints complaints;
  auto flags = settings_.gather_as_given(complaints);
  if (!flags) return std::unexpected(settings_.refuse("init", complaints.lines()));
  flags->folder = folder_of(output_);
  if (!flags->admin.given) flags->admin.text = admin_default();
  if (!complaints.empty()) {
    auto lines = complaints.lines();
    for (const auto& line : complaints_but(*flags, missing_flags(*flags))) {
      if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
    }
    return std::unexpected(settings_.refuse("init", lines));
  }
  if (const int code = ask_for_missing(*flags); code != done) return std::unexpected(code);
  if (const auto wrong = complaints_about(*flags); !wrong.empty()) {
    return std::unexpected(settings_.refuse("init", wrong));
  }
  keep_meaning_of_paths(*flags);
  return std::move(*flags);
}

int InitCommand::write(const GatewayFlags& flags) const {
  const std::string text = first_file(flags);
  if (const auto wrong = misread_settings(text, output_, flags); !wrong.empty()) {
    return settings_.refuse("init", wrong);
  }
  const auto others =
      holds_password(flags.store.text) ? admin::Others::may_nothing : admin::Others::may_read;
  const auto made = admin::make_small_file(output_, others, text);
  if (!made) {
    return complain(made.error() + "; write a path of a folder that you may write to", failed);
  }
  // Another process may have made it since run() looked.
  return *made ? done : refused;
}

int InitCommand::run() const {
  // At the limit of a file's size a write fails, and the signal must not end the process.
  std::signal(SIGXFSZ, SIG_IGN);
  const auto refuse = [&] {
    return complain(output_ +
                        " is there and stays as it is; check it with idem config check "
                        "--config " +
                        output_ +
                        ", remove it, or write another name with "
                        "--output",
                    refused);
  };
  if (output_.empty()) return complain("--output: is empty; write the path of a new file", usage);
  if (is_there(output_)) return refuse();
  if (std::error_code ignored; !fs::is_directory(folder_of(output_), ignored)) {
    return complain(
        "--output: the folder of " + output_ + " is not there; make it or write another path",
        usage);
  }
  const auto flags = settle();
  if (!flags) return flags.error();
  const int code = write(*flags);
  if (code != done) return code == refused ? refuse() : code;
  return check_and_tell_next(output_, json_);
}

}  // namespace idem::cli
