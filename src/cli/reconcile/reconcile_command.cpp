#include "cli/reconcile/reconcile_command.hpp"

#include "cli/exit_code.hpp"
#include "core/bytes/hex.hpp"

#include <idem/key.hpp>
#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <cstdio>
#include <fstream>

namespace idem::cli {

using compare::BadLine;
using compare::Comparison;
using compare::Name;

ReconcileCommand::ReconcileCommand(const Command& program)
    : OperatorCommand(
          program, "reconcile",
          "Compare a provider's export with our records; exit code 5: they differ, or lines have "
          "statuses that no option names",
          {.has_verbs = false, .decides = true}) {
  command().option("--json").describe("print the whole comparison as one JSON document");
  command()
      .option("--operator")
      .describe("with --resolve: who decides, for the evidence log; by default USER@HOST");
  options_.declare(command());
}

OurRecords::Admin ReconcileCommand::admin() const {
  return {[this](const std::string& target, const std::string* body) { return ask(target, body); },
          [this](const AdminAnswer& answer) { return complain_about(answer); },
          [this](const std::string& sentence) { return complain(sentence, failed); }};
}

int ReconcileCommand::run() {
  if (const auto good = options_.check(); !good) return complain(good.error(), usage);
  if (const auto& file = options_.file; !file.empty() && file != "-" && !std::ifstream(file)) {
    return complain(file + " cannot be read; write the path of a file that this user may read",
                    usage);
  }
  const ExportFields fields(options_);
  auto opened = open_export(options_, fields);
  if (!opened) return complain(opened.error(), failed);
  progress_.emplace("idem reconcile: ", "reads");
  OurRecords records(options_, admin());
  Comparison comparison(options_.rules);
  const auto listed =
      records.list(comparison, [this](std::size_t count) { progress("records listed", count); });
  if (!listed) return listed.error();
  if (auto read = read_export(*opened, fields, records, comparison); !read) return read.error();
  if (auto looked = look_outside(records, comparison); !looked) return looked.error();

  report_.name = opened->name;
  report_.digest = to_hex(opened->digest->finish());
  report_.result = std::move(comparison).result();
  if (options_.resolve) {
    if (auto resolved = resolve(*opened); !resolved) return resolved.error();
  }
  progress_.reset();
  json() ? print_comparison_json(report_) : print_comparison(report_, options_.rows);
  if (!report_.complete()) return opened->list->not_reachable ? not_reachable : failed;
  const bool is_decided = report_.unclear.empty();
  return report_.differences() > 0 || report_.left() > 0 || !is_decided ? refused : done;
}

void ReconcileCommand::note_bad_line(const OpenExport& opened, const BadLine& bad) {
  if (++report_.bad_lines > limits::comparison_bad_lines_shown) return;
  report_.bad_places.push_back(opened.sentence_of(bad));
  complain(report_.bad_places.back(), failed);
}

void ReconcileCommand::note_status(const compare::Theirs& line) {
  if (!line.unclear) return;
  const auto found = report_.unclear.find(*line.unclear);
  if (found != report_.unclear.end()) {
    ++found->second;
  } else if (report_.unclear.size() < ComparisonReport::statuses_max) {
    report_.unclear.emplace(*line.unclear, 1);
  } else {
    ++report_.unclear_others;
  }
}

std::expected<void, int> ReconcileCommand::read_export(OpenExport& opened,
                                                       const ExportFields& fields,
                                                       const OurRecords& records,
                                                       Comparison& comparison) {
  compare::ExportLine line;
  for (;;) {
    const auto more = opened.reader->next(line);
    if (!more) {
      note_bad_line(opened, more.error());
      if (more.error().is_end) break;
      continue;
    }
    if (!*more) break;
    progress("lines read", static_cast<std::size_t>(++report_.lines));
    auto read = fields.read(line);
    if (!read) {
      note_bad_line(opened, read.error());
      continue;
    }
    note_status(read->theirs);
    PendingLine pending{.line = std::move(*read), .kept = {}};
    if (options_.resolve && pending.line.theirs.happened) {
      pending.kept = {opened.reader->json(), to_hex(sha256(line.raw))};
    }
    batch_.push_back(std::move(pending));
    if (batch_.size() < limits::list_page_max) continue;
    if (auto compared = compare_batch(records, comparison); !compared) return compared;
  }
  return compare_batch(records, comparison);
}

std::expected<std::vector<std::vector<Name>>, int> ReconcileCommand::names_of_batch(
    const OurRecords& records) const {
  std::vector<std::vector<Name>> names(batch_.size());
  if (options_.match_by != MatchBy::key) {
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      const std::string& match = batch_[i].line.match;
      if (match.empty()) continue;
      const auto ref = options_.match_by == MatchBy::operation ? parse_handle(match) : std::nullopt;
      names[i] = {ref ? ref->bytes : compare::name_of(match)};
    }
    return names;
  }
  std::vector<OurRecords::Key> keys;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    const ReadLine& line = batch_[i].line;
    // An export that copied the header field has the quotes of a structured key.
    std::string key = parse_string_item(line.match).value_or(line.match);
    if (key.empty() || key.size() > limits::key_bytes_max || line.scope.empty()) continue;
    keys.push_back({line.scope, std::move(key)});
    places.push_back(i);
  }
  if (keys.empty()) return names;
  auto found = records.names_of(keys);
  if (!found) return std::unexpected(found.error());
  for (std::size_t i = 0; i < places.size(); ++i) names[places[i]] = std::move((*found)[i]);
  return names;
}

std::expected<void, int> ReconcileCommand::compare_batch(const OurRecords& records,
                                                         Comparison& comparison) {
  const auto names = names_of_batch(records);
  if (!names) return std::unexpected(names.error());
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    auto& [line, kept] = batch_[i];
    const auto met = comparison.add(line.theirs, (*names)[i]);
    if (met.full) {
      return std::unexpected(complain(
          "there are more lines than one comparison can hold; compare a shorter period", failed));
    }
    const bool may_settle = met.ours && accepts_positive_evidence(met.ours->state);
    const std::size_t bytes = kept.json.size() + sizeof(Kept);
    const bool fits = kept_bytes_ + bytes <= limits::comparison_kept_bytes_max;
    if (!may_settle || kept.json.empty() || !fits) continue;
    kept_bytes_ += bytes;
    kept_.emplace(line.theirs.line, std::move(kept));
  }
  batch_.clear();
  return {};
}

// A charge within the period may belong to a record from before it. Only a line without any record
// is one-sided.
std::expected<void, int> ReconcileCommand::look_outside(const OurRecords& records,
                                                        Comparison& comparison) {
  const bool by_ref = options_.match_by == MatchBy::key || options_.match_by == MatchBy::operation;
  if (!by_ref) return {};
  std::size_t count = 0;
  for (const Name& name : comparison.unmet(limits::comparison_lookups_max)) {
    const auto found = records.find(name);
    if (!found) return std::unexpected(found.error());
    if (*found) comparison.add(**found, std::span(&name, 1));
    progress("lines looked up", ++count);
  }
  return {};
}

void ReconcileCommand::progress(const char* what, std::size_t count) {
  if (progress_) progress_->show(std::to_string(count) + " " + what, count);
  if (progress_ && progress_->is_shown()) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - progress_printed_at_ < limits::comparison_progress_interval) return;
  progress_printed_at_ = now;
  std::fprintf(stderr, "idem reconcile: %zu %s\n", count, what);
}

}  // namespace idem::cli
