#include "cli/check/check_command.hpp"

#include "check/draft_spec.hpp"
#include "check/report/reports.hpp"
#include "check/run.hpp"
#include "check/secrets.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal/messages.hpp"
#include "cli/terminal/progress.hpp"
#include "cli/terminal/terminal.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
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

volatile std::sig_atomic_t is_interrupted = 0;

/// While a run lasts, the first SIGINT or SIGTERM ends it with its reports, and the second one ends
/// the program.
class Interruptible {
 public:
  Interruptible() {
    struct sigaction action{};
    action.sa_handler = [](int) { is_interrupted = 1; };
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, &interrupt_);
    ::sigaction(SIGTERM, &action, &terminate_);
  }
  ~Interruptible() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  struct sigaction interrupt_{};
  struct sigaction terminate_{};
};

std::optional<std::string> variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

/// None: it cannot be read; a folder can be opened like a file.
std::optional<std::string> file_text(const std::string& name) {
  std::error_code ignored;
  if (std::filesystem::is_directory(name, ignored)) return std::nullopt;
  std::ifstream file(name, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

/// "-" is the standard output.
bool write_file(const std::string& file, const std::string& text) {
  if (file == "-") {
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
           std::fflush(stdout) == 0;
  }
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  return static_cast<bool>(out.flush());
}

/// Leaves no trace of the attempt.
bool can_write(const std::string& file) {
  if (file.empty() || file == "-") return true;
  std::error_code ignored;
  const bool was_there = std::filesystem::exists(file, ignored);
  const bool is_open = std::ofstream(file, std::ios::binary | std::ios::app).is_open();
  if (is_open && !was_there) std::filesystem::remove(file, ignored);
  return is_open;
}

/// Shows requests, each case's after its id.
class DryRun {
 public:
  void begin_case(std::string_view id) { next_case_ = id; }
  void show(const std::string& what, const std::string& bytes) {
    if (!next_case_.empty()) std::printf("== %s\n\n", next_case_.c_str());
    next_case_.clear();
    std::printf("# %s\n%s\n\n", what.c_str(), bytes.c_str());
  }

 private:
  std::string next_case_ = "before all cases";
};

}  // namespace

CheckCommand::CheckCommand(const Command& command, std::string program)
    : command_(command),
      program_(std::move(program)),
      init_(
          command.add_command("init", "Write the file of --config from answers, or from OpenAPI")) {
  command_.add_option("url", url_, "base URL of the API, such as http://127.0.0.1:8080");
  command_.add_option("--config", config_, "file with the request, and what is known of the API")
      .show_default();
  command_.add_option("--profile", profile_,
                      "ietf, stripe, acp, ucp or custom; default: the file's, or ietf");
  command_.add_option("--json", json_, "write the report as JSON to this file; -: to stdout");
  command_.add_option("--junit", junit_, "write the report as JUnit XML to this file");
  command_.add_option("--sarif", sarif_, "write the report as SARIF 2.1.0 to this file");
  command_.add_option("--html", html_, "write the report as an HTML page to this file");
  command_.add_option("--badge", badge_, "write a badge as SVG to this file");
  command_.add_option("--seed", seed_, "seed of the order of the cases; default: random");
  command_.add_option("--only", only_, "run only these cases or groups: race,key.case")
      .separated_by(',');
  command_.add_option("--wait", wait_, "maximum time to wait until the API answers: 60s");
  command_.add_option("--rate", rate_, "maximum requests per second, 0: no limit; races exceed it")
      .show_default();
  command_.add_option("--max-requests", requests_max_, "maximum requests of the run")
      .show_default();
  command_.add_flag("--dry-run", dry_run_, "print the requests without sending them");
  command_.add_flag("--i-own-this", owns_it_, "allow an API that is not on this machine");
  command_.add_flag("--insecure", insecure_, "accept any TLS certificate");
  command_.add_flag("--list", list_, "list the cases, without a run");
  init_.add_option("url", url_, "base URL of the API");
  init_.add_option("--config", config_, "the file to write").show_default();
  init_.add_option("--profile", profile_, "ietf, stripe, acp, ucp or custom");
  init_.add_option("--openapi", openapi_, "an OpenAPI 3 document to take the answers from");
  init_.add_option("--path", path_,
                   "the path in the document; default: the first with a key header field");
  init_.add_flag("--force", force_, "replace an existing file");
}

int CheckCommand::complain(const std::string& sentence, int code) const {
  return say_error_of(program_ + (init_.parsed() ? " init" : ""), sentence, code);
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
  std::error_code ignored;
  if (std::filesystem::is_directory(config_, ignored)) {
    return std::unexpected(complain(config_ + " is a folder; --config names a file", usage));
  }
  if (!text) {
    return std::unexpected(
        complain(config_ + " cannot be read; write it with: " + program_ + " init " + url_, usage));
  }
  // What is not sent needs no credential.
  const auto environment = [this](const std::string& name) {
    auto value = variable(name);
    if (dry_run_ && !value) value = "***";
    return value;
  };
  config::Complaints complaints;
  check::Spec spec = check::read_spec(*text, config_, profile_, environment, complaints);
  if (complaints.empty()) return spec;
  for (const std::string& line : complaints.lines()) std::fprintf(stderr, "%s\n", line.c_str());
  return std::unexpected(int{usage});
}

bool CheckCommand::may_send(const check::Origin& origin, const std::string& host) const {
  if (owns_it_ || dry_run_ || origin.is_loopback()) return true;
  complain(host +
               " is not this machine. A run sends hundreds of requests, also malformed ones, and "
               "creates real orders: if the API is yours, add --i-own-this",
           usage);
  return false;
}

int CheckCommand::run() {
  // A reader that left, and an API that closes, are errors of a write.
  std::signal(SIGPIPE, SIG_IGN);
  const int code = init_.parsed() ? init() : list_ ? list() : check();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return complain("the standard output cannot be written", failed);
}

int CheckCommand::init() {
  std::error_code ignored;
  if (!force_ && std::filesystem::exists(config_, ignored)) {
    return complain(config_ + " exists; add --force to replace it", refused);
  }
  check::DraftSpec draft;
  if (!openapi_.empty()) {
    const auto document = file_text(openapi_);
    if (!document) return complain(openapi_ + " cannot be read", usage);
    auto read = check::spec_of_openapi(*document, path_);
    if (!read) return complain(openapi_ + ": " + read.error(), usage);
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
    return complain("the input ended before the last question; no file was written", usage);
  }
  const std::string text = check::written(draft);
  // Complaints of read_spec() are better known here; the variables need no value yet.
  config::Complaints complaints;
  check::read_spec(text, config_, {}, [](const std::string&) { return "x"; }, complaints);
  for (const std::string& line : complaints.lines()) std::fprintf(stderr, "%s\n", line.c_str());
  if (!write_file(config_, text)) return complain(config_ + " cannot be written", failed);
  const std::string command =
      program_ + " " + (url_.empty() ? "URL" : url_) + " --config " + config_;
  std::printf("%s is written. Show its requests with:\n  %s --dry-run\n", config_.c_str(),
              command.c_str());
  const auto variables = check::variables_of(draft);
  if (!variables.empty()) std::printf("A run needs the credentials:\n");
  for (const std::string& name : variables) std::printf("  export %s=...\n", name.c_str());
  return complaints.empty() ? done : usage;
}

std::optional<int> CheckCommand::refuse_early() const {
  if (url_.empty()) {
    const bool is_taken =
        std::ranges::any_of(only_, [](const std::string& one) { return one.contains("://"); });
    return complain(is_taken ? "--only has taken the URL for a case; write the URL first, or the "
                               "cases with commas: --only race,key.case"
                             : "the URL is missing: " + program_ + " http://127.0.0.1:8080",
                    usage);
  }
  if (const auto known = check::are_known(only_); !known) {
    return complain("--only: there is no case or group `" + known.error() + "`; " + program_ +
                        " --list shows them",
                    usage);
  }
  if (!std::isfinite(rate_) || rate_ < 0) {
    return complain("--rate: must be a number above 0, or 0 for no limit", usage);
  }
  if (!wait_.empty() && !check::duration_of(wait_)) {
    return complain("--wait: must be a duration: 500ms, 10s or 5m", usage);
  }
  for (const std::string* const file : {&json_, &junit_, &sarif_, &html_, &badge_}) {
    if (!dry_run_ && !can_write(*file)) return complain(*file + " cannot be written", usage);
  }
  return std::nullopt;
}

std::expected<check::Report, std::string> CheckCommand::run_cases(
    const check::Spec& spec, const check::Origin& origin) const {
  const std::uint64_t seed = seed_ ? *seed_ : std::random_device()();
  DryRun dry;
  check::Manners manners{.per_second = rate_,
                         .requests_max = requests_max_,
                         .insecure = insecure_,
                         .is_interrupted = [] { return is_interrupted != 0; }};
  if (dry_run_) {
    manners.dry_run = [&](const std::string& what, const std::string& bytes) {
      dry.show(what, bytes);
    };
  }
  check::Api api(spec, origin, std::move(manners), seed);
  std::optional<Progress> progress;
  if (!dry_run_) {
    progress.emplace(program_ + ": ", "connecting", Progress::Elsewhere::nothing);
  }
  const Interruptible interruptible;
  if (!wait_.empty() && !dry_run_) {
    try {
      const auto there = api.answers(*check::duration_of(wait_));
      if (!there) return std::unexpected(there.error() + ", after " + wait_);
    } catch (const check::RunEnded& ended) {
      return std::unexpected("the run ended: " + ended.why);
    }
  }
  const auto show = [&](std::size_t at, std::size_t of, std::string_view id) {
    dry.begin_case(id);
    if (!progress) return;
    progress->show(std::to_string(at) + " of " + std::to_string(of) + ": " + std::string(id));
  };
  return check::run_cases(api, {.seed = seed, .only = only_, .progress = show});
}

int CheckCommand::check() {
  if (const auto code = refuse_early()) return *code;
  std::string path;
  const auto origin = check::Origin::parse(url_, &path);
  if (!origin) return complain(check::without_user(url_) + ": " + origin.error(), usage);
  auto spec = read();
  if (!spec) return spec.error();
  // The URL is the API's base; alone it may also be the whole target.
  while (path.ends_with('/')) path.pop_back();
  if (!path.empty()) spec->path = path + spec->path;
  if (!path.empty() && spec->other_path) spec->other_path = path + *spec->other_path;
  if (spec->path.empty()) spec->path = "/";
  if (!may_send(*origin, origin->host)) return usage;
  if (spec->effects && !spec->effects->url.empty()) {
    const auto effects = check::Origin::parse(spec->effects->url);
    if (!effects) return complain("effects.url: " + effects.error(), usage);
    if (!may_send(*effects, effects->host)) return usage;
  }
  auto report = run_cases(*spec, *origin);
  if (!report) return complain(origin->text() + ": " + report.error(), not_reachable);
  if (dry_run_) return done;
  report->config = config_path();
  return write_reports(*report);
}

std::string CheckCommand::config_path() const {
  const std::filesystem::path path(config_);
  std::error_code failed_to;
  const auto here = std::filesystem::current_path(failed_to);
  if (!path.is_absolute() || failed_to) return path.lexically_normal().string();
  const std::string relative = path.lexically_relative(here).string();
  return relative.empty() || relative.starts_with("..") ? config_ : relative;
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
    return complain(*file + " cannot be written", failed);
  }
  if (report.passes()) return done;
  const bool has_findings = std::ranges::any_of(report.cases, [](const check::CaseResult& one) {
    return one.outcome == check::Outcome::fail;
  });
  return has_findings ? failed : refused;
}

}  // namespace idem::cli
