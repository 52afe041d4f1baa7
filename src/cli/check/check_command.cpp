#include "cli/check/check_command.hpp"

#include "check/draft_spec.hpp"
#include "check/report/reports.hpp"
#include "check/run.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal/messages.hpp"
#include "cli/terminal/progress.hpp"
#include "cli/terminal/terminal.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <sstream>

namespace idem::cli {
namespace {

constexpr std::string_view command_name = "check";
constexpr std::string_view init_name = "check init";

std::optional<std::string> variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

std::optional<std::string> file_text(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

/// "-" is the standard output.
bool write_file(const std::string& file, const std::string& text) {
  if (file == "-") return std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  return static_cast<bool>(out.flush());
}

int print_dry(const std::string& what, const std::string& bytes) {
  std::printf("# %s\n%s\n\n", what.c_str(), bytes.c_str());
  return 0;
}

}  // namespace

CheckCommand::CheckCommand(CLI::App& app) : command_(app) {
  app.add_option("url", url_, "where the API is: http://127.0.0.1:8080");
  app.add_option("--config", config_, "what to send, and what to know of the API")
      ->capture_default_str();
  app.add_option("--profile", profile_,
                 "ietf, stripe, acp, ucp or custom; else the file's, or ietf");
  app.add_option("--json", json_, "write the result as JSON to this file; -: to stdout");
  app.add_option("--junit", junit_, "write it as JUnit XML to this file");
  app.add_option("--sarif", sarif_, "write it as SARIF 2.1.0 to this file");
  app.add_option("--html", html_, "write it as one page for people to this file");
  app.add_option("--badge", badge_, "write a badge as SVG to this file");
  app.add_option("--seed", seed_, "of the order of the cases; a random one by default");
  app.add_option("--only", only_, "only these cases, or groups of them: race, key.case");
  app.add_option("--rate", rate_, "requests a second at most, but for those of a race")
      ->capture_default_str();
  app.add_option("--max-requests", requests_max_, "of the whole run")->capture_default_str();
  app.add_flag("--dry-run", dry_run_, "show the requests, and send none");
  app.add_flag("--i-own-this", owns_it_, "send also to an API that is not on this machine");
  app.add_flag("--insecure", insecure_, "accept any certificate");
  app.add_flag("--list", list_, "list the cases, and send nothing");
  init_ = app.add_subcommand("init", "Write the file of --config from answers, or from OpenAPI");
  init_->add_option("url", url_, "where the API is");
  init_->add_option("--config", config_, "the file to write")->capture_default_str();
  init_->add_option("--profile", profile_, "ietf, stripe, acp, ucp or custom");
  init_->add_option("--openapi", openapi_, "an OpenAPI 3 document that fills in what it says");
  init_->add_option("--path", path_, "which of its paths; else the first with a key's field");
  init_->add_flag("--force", force_, "replace a file that is there");
}

int CheckCommand::list() const {
  for (const check::Case& one : check::all_cases()) {
    const std::string severity(check::name_of(one.text.severity));
    std::printf("%-18s %-16s %s\n", std::string(one.text.id).c_str(), severity.c_str(),
                std::string(one.text.title).c_str());
  }
  return done;
}

std::expected<check::Spec, int> CheckCommand::read() const {
  const auto text = file_text(config_);
  if (!text) {
    return std::unexpected(say_error(
        command_name, config_ + " cannot be read; write it with: idem check init " + url_, usage));
  }
  config::Complaints complaints;
  check::Spec spec = check::read_spec(*text, config_, profile_, &variable, complaints);
  if (complaints.empty()) return spec;
  for (const std::string& line : complaints.lines()) std::fprintf(stderr, "%s\n", line.c_str());
  return std::unexpected(int{usage});
}

bool CheckCommand::may_send(const check::Origin& origin, const std::string& host) const {
  if (owns_it_ || dry_run_ || origin.is_loopback()) return true;
  say_error(command_name,
            host +
                " is not this machine. The test sends hundreds of requests, also malformed "
                "ones, and makes real orders: if the API is yours, add --i-own-this",
            usage);
  return false;
}

int CheckCommand::run() {
  if (init_->parsed()) return init();
  return list_ ? list() : check();
}

int CheckCommand::init() {
  check::DraftSpec draft;
  if (!openapi_.empty()) {
    const auto document = file_text(openapi_);
    if (!document) return say_error(init_name, openapi_ + " cannot be read", usage);
    auto read = check::spec_of_openapi(*document, path_);
    if (!read) return say_error(init_name, openapi_ + ": " + read.error(), usage);
    draft = std::move(*read);
  }
  if (!profile_.empty()) draft.profile = profile_;
  const bool is_asked = openapi_.empty() || ::isatty(STDIN_FILENO) == 1;
  const auto ask = [](const std::string& question,
                      const std::string& otherwise) -> std::optional<std::string> {
    std::printf("%s%s ", question.c_str(),
                otherwise.empty() ? "" : (" [" + otherwise + "]").c_str());
    std::fflush(stdout);
    std::string answer;
    if (!std::getline(std::cin, answer)) return std::nullopt;
    return answer;
  };
  if (is_asked && !check::ask_for_spec(draft, ask)) {
    return say_error(init_name, "the answers ended before the last question; nothing was written",
                     usage);
  }
  const std::string text = check::written(draft);
  // What read_spec() refuses is better learned here; variables need no value yet.
  config::Complaints complaints;
  check::read_spec(text, config_, {}, [](const std::string&) { return "x"; }, complaints);
  for (const std::string& line : complaints.lines()) std::fprintf(stderr, "%s\n", line.c_str());
  std::error_code ignored;
  if (!force_ && std::filesystem::exists(config_, ignored)) {
    return say_error(init_name, config_ + " is there; add --force to replace it", refused);
  }
  if (!write_file(config_, text))
    return say_error(init_name, config_ + " cannot be written", failed);
  std::printf("%s is written. Read it, then: idem check %s --config %s --dry-run\n",
              config_.c_str(), url_.empty() ? "URL" : url_.c_str(), config_.c_str());
  return complaints.empty() ? done : usage;
}

int CheckCommand::check() {
  if (url_.empty()) {
    return say_error(command_name, "the API's URL is missing: idem check http://127.0.0.1:8080",
                     usage);
  }
  std::string path;
  auto origin = check::Origin::parse(url_, &path);
  if (!origin) return say_error(command_name, url_ + ": " + origin.error(), usage);
  auto spec = read();
  if (!spec) return spec.error();
  // The URL is the API's base; alone it may also be the whole target.
  if (path != "/") spec->path = spec->path.empty() ? path : path + spec->path;
  if (spec->path.empty()) spec->path = "/";
  if (!may_send(*origin, origin->host)) return usage;
  if (spec->effects && !spec->effects->url.empty()) {
    const auto books = check::Origin::parse(spec->effects->url);
    if (!books) return say_error(command_name, "effects.url: " + books.error(), usage);
    if (!may_send(*books, books->host)) return usage;
  }
  const std::uint64_t seed = seed_ ? *seed_ : std::random_device()();
  check::Manners manners{.per_second = rate_, .requests_max = requests_max_, .insecure = insecure_};
  if (dry_run_) manners.dry_run = &print_dry;
  check::Api api(*spec, *origin, std::move(manners), seed);
  std::optional<Progress> progress;
  if (!dry_run_) {
    progress.emplace("idem check: ", "connecting", Progress::Elsewhere::nothing);
  }
  const auto report =
      check::run_cases(api, {.seed = seed,
                             .only = only_,
                             .progress = [&](std::size_t at, std::size_t of, std::string_view id) {
                               if (!progress) return;
                               progress->show(std::to_string(at) + " of " + std::to_string(of) +
                                              ": " + std::string(id));
                             }});
  progress.reset();
  if (!report)
    return say_error(command_name, api.origin().text() + ": " + report.error(), not_reachable);
  if (dry_run_) return done;
  if (report->cases.empty()) {
    return say_error(command_name, "no case has such a name; the names: idem check --list", usage);
  }
  return write_reports(*report);
}

int CheckCommand::write_reports(const check::Report& report) const {
  if (json_ != "-") {
    const auto columns = terminal_columns(STDOUT_FILENO);
    const std::string text = check::terminal_report(report, has_colours(STDOUT_FILENO),
                                                    static_cast<int>(columns.value_or(10'000)));
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  const std::initializer_list<std::pair<const std::string*, std::string (*)(const check::Report&)>>
      reports{{&json_, &check::json_report},
              {&junit_, &check::junit_report},
              {&sarif_, &check::sarif_report},
              {&html_, &check::html_report},
              {&badge_, &check::badge_svg}};
  for (const auto& [file, write] : reports) {
    if (file->empty() || write_file(*file, write(report))) continue;
    return say_error(command_name, *file + " cannot be written", failed);
  }
  return report.passes() ? done : failed;
}

}  // namespace idem::cli
