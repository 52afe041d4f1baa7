#include "cli/commands/bulk_command.hpp"

#include "cli/commands/jobs_print.hpp"
#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal/progress.hpp"
#include "core/bytes/percent.hpp"
#include "json/value.hpp"
#include "json/writer.hpp"

#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <thread>

namespace idem::cli {
namespace {

constexpr auto look_interval = std::chrono::seconds(1);

void write_search(json::Writer& out, const std::string& what,
                  const std::vector<std::pair<std::string, std::string>>& match) {
  out.member("what", what);
  out.name("match");
  out.begin_object();
  for (const auto& [name, value] : match) {
    if (value.empty()) continue;
    if (name == "contested") {
      out.flag(name, true);
    } else {
      out.member(name, value);
    }
  }
  out.end_object();
}

std::optional<std::uint64_t> whole(const json::Value* value) {
  const auto* const number = value == nullptr ? nullptr : std::get_if<std::int64_t>(&value->is);
  if (number == nullptr || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

std::string counted_records(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " record" : " records");
}

}  // namespace

void BulkCommand::declare_job(const Command& verb, HasRate has_rate) {
  verb.add_option(
      "--expect", expect_,
      "of a job: the number of records that you have seen; needed without a terminal; with "
      "another number nothing begins");
  if (has_rate == HasRate::no) {
    verb.add_option("--rate", rate_, "of a job: records a second, 1 to 1000; 10 by default");
  }
  verb.add_flag("--detach", detach_, "of a job: do not wait for its end; see idem jobs");
}

std::expected<std::uint64_t, int> BulkCommand::count(const std::string& what, const Match& match) {
  json::Writer out;
  out.begin_object();
  write_search(out, what, match);
  out.end_object();
  const std::string body = out.take();
  const auto answer = ask("/v1/jobs/preview", &body);
  if (!answer) return std::unexpected(answer.error());
  if (answer->status != 200) return std::unexpected(complain_about(*answer));
  const auto preview = json::parse(answer->body);
  const auto counted = preview ? whole(preview->find("count")) : std::nullopt;
  const auto* const exact = preview ? preview->find("is_exact") : nullptr;
  const auto* const is_exact = exact == nullptr ? nullptr : std::get_if<bool>(&exact->is);
  if (!counted || is_exact == nullptr) return std::unexpected(complain(malformed_answer, failed));
  const std::uint64_t found = counted.value_or(0);
  if (!*is_exact) {
    return std::unexpected(complain("at least " + counted_records(found) +
                                        " match, which is more than one job may have; narrow the "
                                        "filter",
                                    refused));
  }
  // A person reads this, so it goes where prompts go.
  std::fprintf(stderr, "%s %s.\n", counted_records(found).c_str(),
               found == 1 ? "matches" : "match");
  for (const auto& ref : items_of(preview->find("examples"))) {
    std::fprintf(stderr, "  %s\n", text_of(&ref).c_str());
  }
  return found;
}

bool BulkCommand::confirms(std::uint64_t count) const {
  std::fprintf(stderr, "Do this to %s? Type %llu: ", counted_records(count).c_str(),
               static_cast<unsigned long long>(count));
  std::string typed;
  return std::getline(std::cin, typed) && typed == std::to_string(count);
}

int BulkCommand::run_job(const std::string& what, const Match& match, const std::string& order,
                         std::optional<unsigned> rate) {
  const auto found = count(what, match);
  if (!found) return found.error();
  if (expect_ && *expect_ != *found) {
    return complain("now " + counted_records(*found) + " match, not " + std::to_string(*expect_) +
                        "; nothing was begun",
                    refused);
  }
  if (*found == 0) return complain("nothing matches, so nothing was begun", not_found);
  if (!expect_ && ::isatty(STDIN_FILENO) == 0) {
    return complain("give --expect " + std::to_string(*found) + " to do this without a terminal",
                    usage);
  }
  if (!expect_ && !confirms(*found)) return complain("nothing was begun", failed);
  json::Writer out;
  out.begin_object();
  write_search(out, what, match);
  out.name("order");
  out.json(order);
  out.member("expected", *found);
  if (!rate) rate = rate_;
  if (rate) out.member("rate", *rate);
  out.end_object();
  const std::string body = out.take();
  const auto answer = ask("/v1/jobs", &body);
  if (!answer) return answer.error();
  if (answer->status != 202) return complain_about(*answer);
  const auto job = json::parse(answer->body);
  const auto* const id = job ? job->find("job") : nullptr;
  if (id == nullptr) return say_that_it_waits(*answer);
  if (detach_) return show(answer->body, print_job);
  std::fprintf(stderr, "job %s\n", text_of(id).c_str());
  return follow(text_of(id));
}

int BulkCommand::follow(const std::string& id) {
  Progress progress("idem " + name() + ": job ", "begins", Progress::Elsewhere::lines);
  for (;;) {
    const auto answer = ask("/v1/jobs/" + percent_encoded(id), nullptr);
    if (!answer) {
      erase_progress();
      std::fprintf(stderr, "The job goes on in any process of the store: idem jobs show %s\n",
                   id.c_str());
      return answer.error();
    }
    if (answer->status != 200) return complain_about(*answer);
    const auto job = json::parse(answer->body);
    if (!job || job->find("state") == nullptr) return complain(malformed_answer, failed);
    const std::string state = text_of(job->find("state"));
    const auto refusals = whole(job->find("refused")).value_or(0);
    if (state == "ended" || state == "cancelled" || state == "damaged") {
      erase_progress();
      const int shown = show(answer->body, print_job);
      if (shown != done) return shown;
      if (state == "damaged") return failed;
      return state == "cancelled" || refusals > 0 ? refused : done;
    }
    std::string text = state + ": " + text_of(job->find("done")) + " done, " +
                       std::to_string(refusals) + " refused, " + text_of(job->find("left")) +
                       " left";
    progress.show(std::move(text), whole(job->find("done")), whole(job->find("count")));
    std::this_thread::sleep_for(look_interval);
  }
}

}  // namespace idem::cli
