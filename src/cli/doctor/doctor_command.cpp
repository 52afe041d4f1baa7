#include "cli/doctor/doctor_command.hpp"

#include "cli/commands/tables.hpp"
#include "cli/doctor/file_checks.hpp"
#include "cli/doctor/finding.hpp"
#include "cli/doctor/machine_checks.hpp"
#include "cli/doctor/network_checks.hpp"
#include "cli/doctor/store_checks.hpp"
#include "cli/exit_code.hpp"
#include "cli/process/resources.hpp"
#include "json/writer.hpp"
#include "store/known_kinds.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>

namespace idem::cli {
namespace doctor {
namespace {

using Result = Finding::Result;

// More than all waits of one probe of a service together, and than a store's start takes.
constexpr auto probes_take = std::chrono::seconds(20);

std::string_view name_of(Result result) {
  switch (result) {
    case Result::ok:
      return "ok";
    case Result::warning:
      return "warning";
    case Result::problem:
      return "problem";
    case Result::skipped:
      return "skipped";
  }
  return "";
}

/// What the probes' threads share with the command. They may outlive its wait.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::optional<Findings>> found;
  std::size_t ended = 0;
};

/// Runs all at once. `left_behind`: one did not end in time; its thread goes on.
Findings run_all(std::vector<Probe> probes, bool& left_behind) {
  const auto shared = std::make_shared<Shared>();
  shared->found.resize(probes.size());
  std::vector<std::thread> threads;
  threads.reserve(probes.size());
  for (std::size_t i = 0; i < probes.size(); ++i) {
    threads.emplace_back([shared, i, run = probes[i].run] {
      Findings found = run();
      const std::lock_guard lock(shared->mutex);
      shared->found[i] = std::move(found);
      ++shared->ended;
      shared->changed.notify_one();
    });
  }
  std::unique_lock lock(shared->mutex);
  left_behind =
      !shared->changed.wait_for(lock, probes_take, [&] { return shared->ended == probes.size(); });
  Findings all;
  for (std::size_t i = 0; i < probes.size(); ++i) {
    auto found = shared->found[i].value_or(Findings{
        Finding::problem(probes[i].check, fmt::format("no answer within {} s", probes_take.count()),
                         probes[i].todo)});
    std::ranges::move(found, std::back_inserter(all));
    if (!shared->found[i]) threads[i].detach();
  }
  lock.unlock();
  // The process does not end beside a thread that still gives back what its libraries keep for it.
  for (std::thread& one : threads) {
    if (one.joinable()) one.join();
  }
  return all;
}

std::string as_json(const Findings& findings) {
  json::Writer out;
  out.begin_object();
  out.name("checks");
  out.begin_array();
  for (const Finding& one : findings) {
    out.begin_object();
    out.member("check", one.check);
    out.member("result", name_of(one.result));
    out.member("finding", one.what);
    out.name("do");
    if (one.todo.empty()) {
      out.null();
    } else {
      out.text(one.todo);
    }
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return out.take() + "\n";
}

std::string as_text(const Findings& findings) {
  std::array<std::size_t, 4> counts{};
  std::string text;
  for (const Finding& one : findings) {
    ++counts[static_cast<std::size_t>(one.result)];
    text += fmt::format("{:<8} {}: {}\n", name_of(one.result), printable(one.check),
                        printable(one.what));
    if (!one.todo.empty()) text += fmt::format("         do: {}\n", printable(one.todo));
  }
  const auto count = [&](Result result) { return counts[static_cast<std::size_t>(result)]; };
  const auto counted = [&](Result result, std::string_view one) {
    const std::size_t number = count(result);
    return fmt::format("{} {}{}", number, one, number == 1 ? "" : "s");
  };
  return text + fmt::format("{}, {}, {} ok\n", counted(Result::problem, "problem"),
                            counted(Result::warning, "warning"), count(Result::ok));
}

}  // namespace
}  // namespace doctor

DoctorCommand::DoctorCommand(const Command& program)
    : command_(program.add_command(
          "doctor",
          "Look at store, clock, disks, limits, upstream, providers and certificates, and "
          "say what to do; changes nothing")),
      settings_(command_) {
  command_.add_flag("--json", json_, "print the findings as JSON");
  command_.set_notes(
      command_.notes() +
      "\nIt reads the settings as a start does, and looks at: the store (who may read its file, "
      "whether it accepts the settings, what its server may lose), the clock beside the store's "
      "and NTP, room and kind of each disk, the limits of open files and file sizes, whether "
      "upstream, authoriser, providers, destinations and the collector of traces can be reached, "
      "their certificates and its own and how long they last, who may read files with secrets, "
      "and what listens on its addresses.\n"
      "Each finding that is not ok says what to do. As the service's user with its file: sudo -u "
      "idem idem doctor --config /etc/idem/idem.yaml");
  command_
      .add_option("--role", role_,
                  "whose settings: gateway or worker; by default, which of them they look like")
      .one_of({"guessed", "gateway", "worker"});
}

int DoctorCommand::run() const {
  std::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();  // A look at a large store opens all of its files.
  const bool is_worker =
      role_ == "worker" || (role_ == "guessed" && settings_.guessed_purpose() == Purpose::worker);
  const Purpose purpose = is_worker ? Purpose::worker : Purpose::gateway;
  const auto read = settings_.read_for(purpose);
  if (!read) return settings_.refuse("doctor", read.error());
  doctor::Findings findings;
  for (const auto& warning : read->warnings) {
    findings.push_back(doctor::Finding::warning("settings", warning, "correct the setting"));
  }
  std::vector<doctor::Probe> probes{doctor::store_probe(read->options)};
  if (path_in(read->options.store)) probes.front().todo = doctor::look_at_the_disk;
  std::ranges::move(doctor::service_probes(*read), std::back_inserter(probes));
  const auto add = [&probes](const char* check, std::function<doctor::Findings()> run) {
    probes.push_back({check, std::move(run), doctor::look_at_the_disk});
  };
  add("machine", [&read] { return doctor::check_machine(read->options); });
  add("listeners", [&read, purpose] { return doctor::check_listeners(read->options, purpose); });
  add("files of the settings", [&read] { return doctor::check_files(*read); });
  bool left_behind = false;
  std::ranges::move(doctor::run_all(std::move(probes), left_behind), std::back_inserter(findings));
  const std::string text = json_ ? doctor::as_json(findings) : doctor::as_text(findings);
  std::fwrite(text.data(), 1, text.size(), stdout);
  const bool is_fine = std::ranges::none_of(
      findings, [](const doctor::Finding& one) { return one.result == doctor::Result::problem; });
  const int code = is_fine ? done : failed;
  if (!left_behind) return code;
  // A thread still waits for its answer, and must not meet the end of what it uses.
  std::fflush(stdout);
  ::_exit(code);
}

}  // namespace idem::cli
