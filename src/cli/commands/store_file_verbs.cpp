#include "cli/commands/store_file_verbs.hpp"

#include "cli/commands/store_complaint.hpp"
#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"
#include "cli/process/resources.hpp"
#include "cli/terminal/progress.hpp"
#include "core/bytes/rfc3339.hpp"
#include "json/writer.hpp"
#include "store/known_kinds.hpp"

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <expected>
#include <filesystem>
#include <utility>

namespace idem::cli {
namespace {

constexpr std::array all_states{State::pending,          State::in_progress, State::completed,
                                State::failed_retryable, State::unknown,     State::expired};

int complain_of_file(const StoreFileError& error) {
  switch (error.kind) {
    case StoreFileError::Kind::not_found:
      return complain_of_store(error.why, not_found);
    case StoreFileError::Kind::empty:
    case StoreFileError::Kind::refused:
      return complain_of_store(error.why, refused);
    case StoreFileError::Kind::failed:
      break;
  }
  return complain_of_store(error.why, failed);
}

struct Place {
  const StoreFileKind* kind = nullptr;
  std::string path;  ///< Absolute.
};

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

/// The file of a store's URL. Error: a sentence.
std::expected<Place, std::string> place_of(const std::string& url) {
  if (const auto known = check_store_url(url); !known) return std::unexpected(known.error());
  const KnownKind* const kind = known_kind_of(url);
  if (kind == nullptr || kind->linked == nullptr || kind->linked->file == nullptr) {
    return std::unexpected(shown_store_url(url) +
                           ": only embedded:PATH and sqlite:PATH are files; back up a server as "
                           "docs/operations.md says");
  }
  return Place{kind->linked->file, absolute(path_in(url).value())};
}

/// A URL of a store, or the file of a backup; that of a log is a directory.
std::expected<Place, std::string> place_or_file(const std::string& text) {
  if (known_kind_of(text) != nullptr || text == "memory:" || text.starts_with("hybrid:")) {
    return place_of(text);
  }
  std::error_code code;
  const bool is_directory = std::filesystem::is_directory(text, code);
  return place_of((is_directory ? "embedded:" : "sqlite:") + absolute(text));
}

StoreFileProgress shown_by(Progress& progress, const char* unit) {
  if (!progress.is_shown()) return {};
  return [&progress, unit](std::uint64_t done, std::uint64_t all) {
    progress.show(fmt::format("{} of {} {}", done, all, unit), done, all);
  };
}

std::uint64_t all_records_of(const StoreFileReport& report) {
  std::uint64_t all = 0;
  for (const auto count : report.by_state) all += count;
  return all;
}

std::uint64_t records_in(const StoreFileReport& report, State state) {
  return report.by_state[static_cast<std::size_t>(state)];
}

std::array<std::pair<const char*, std::optional<StoreTime>>, 3> moments_of(
    const StoreFileReport& report) {
  return {{{"copied_at", report.copied_at},
           {"newest_record", report.newest_record},
           {"last_clean_stop", report.last_clean_stop}}};
}

void print_file_report(const StoreFileReport& report) {
  std::printf("records %llu", static_cast<unsigned long long>(all_records_of(report)));
  const char* before = ": ";
  for (const State state : all_states) {
    if (records_in(report, state) == 0) continue;
    std::printf("%s%s %llu", before, std::string(name_of(state)).c_str(),
                static_cast<unsigned long long>(records_in(report, state)));
    before = ", ";
  }
  std::printf("\nbytes %llu\n", static_cast<unsigned long long>(report.bytes));
  if (!report.store_id.empty()) std::printf("store_id %s\n", report.store_id.c_str());
  for (const auto& [name, moment] : moments_of(report)) {
    if (moment) std::printf("%s %s\n", name, to_rfc3339(*moment).c_str());
  }
  if (report.is_move_cut_off) {
    std::printf("move cut off: a start was moving its records to other shards; %s\n",
                report.found == 0
                    ? "the next one goes on"
                    : "one goes on only with a number of shards where damaged records stay");
  }
  for (const auto& doubt : report.doubts) std::printf("in doubt: %s\n", printable(doubt).c_str());
  for (const auto& one : report.findings) {
    std::printf("%s: %s\n  do: %s\n", printable(one.where).c_str(), printable(one.what).c_str(),
                printable(one.todo).c_str());
  }
  if (report.found > report.findings.size()) {
    std::printf("and %llu more\n",
                static_cast<unsigned long long>(report.found - report.findings.size()));
  }
}

void write_report(json::Writer& out, const StoreFileReport& report) {
  out.member("store_id", report.store_id);
  out.name("records");
  out.begin_object();
  for (const State state : all_states) out.member(name_of(state), records_in(report, state));
  out.end_object();
  out.member("evidence", report.evidence);
  out.member("journal_lines", report.journal_lines);
  out.member("bytes", report.bytes);
  for (const auto& [name, moment] : moments_of(report)) {
    out.name(name);
    if (moment) {
      out.text(to_rfc3339(*moment));
    } else {
      out.null();
    }
  }
  out.flag("move_cut_off", report.is_move_cut_off);
  out.name("doubts");
  out.begin_array();
  for (const auto& doubt : report.doubts) out.text(doubt);
  out.end_array();
  out.member("found", report.found);
  out.name("findings");
  out.begin_array();
  for (const auto& one : report.findings) {
    out.begin_object();
    out.member("where", one.where);
    out.member("what", one.what);
    out.member("do", one.todo);
    out.end_object();
  }
  out.end_array();
}

void print_object(json::Writer& out) {
  out.end_object();
  const std::string text = out.take() + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int end_of(const StoreFileReport& report) {
  if (report.found == 0) return done;
  return complain_of_store(fmt::format("{} finding{}", report.found, report.found == 1 ? "" : "s"),
                           refused);
}

void print_what_a_restore_means(const Restored& restored) {
  const auto& from = restored.from;
  const std::string when =
      from.copied_at ? to_rfc3339(*from.copied_at) : std::string("the moment of the backup");
  std::printf(
      "restored the state of %s: %llu records, of which %llu are unknown now (%llu were "
      "in_progress "
      "there, %llu pending, %llu failed_retryable)\n",
      when.c_str(), static_cast<unsigned long long>(all_records_of(from)),
      static_cast<unsigned long long>(restored.unknown),
      static_cast<unsigned long long>(records_in(from, State::in_progress)),
      static_cast<unsigned long long>(records_in(from, State::pending)),
      static_cast<unsigned long long>(records_in(from, State::failed_retryable)));
  if (!restored.old_store.empty()) std::printf("old store %s\n", restored.old_store.c_str());
  std::printf(
      "This store knows no key that came after %s: a retry of such a request would be done a "
      "second time. Before you start a gateway for clients, read \"What a restore means for "
      "retries\" in docs/operations.md (of the Debian package: below /usr/share/doc/idem). Settle "
      "the unknown ones: idem keys list --state unknown.\n",
      when.c_str());
}

std::string shown(const std::optional<StoreTime>& moment, const char* without) {
  return moment ? to_rfc3339(*moment) : std::string(without);
}

void print_what_was_recovered(const Recovered& recovered, const std::string& file,
                              const std::string& store) {
  std::printf("recovered %s\n", file.c_str());
  print_file_report(recovered.made);
  for (const auto& note : recovered.notes) std::printf("note: %s\n", printable(note).c_str());
  if (recovered.lacks_keys) {
    std::printf(
        "Keys may be missing from %s to the end of its last process: a retry of such a request "
        "would be done a second time. "
        "Before you start a gateway for clients, read \"What a restore means for retries\" in "
        "docs/operations.md (of the Debian package: below /usr/share/doc/idem).\n",
        shown(recovered.lacks_from, "the beginning").c_str());
  } else {
    std::puts("No key is missing.");
  }
  std::printf(
      "What was not settled is unknown now: idem keys list --state unknown. To put it in place: "
      "idem store restore %s %s --replace\n",
      file.c_str(), store.c_str());
}

std::string why_no_path(const std::string& value) {
  const bool is_url = value.starts_with("sqlite:") || value.starts_with("embedded:");
  return is_url ? value + " is the URL of a store: write the path of a file, without its scheme"
                : "";
}

}  // namespace

StoreFileVerbs::StoreFileVerbs(const Command& restore, const Command& recover,
                               const Command& reindex, const Command& check, const Command& backup)
    : backup_(backup), check_(check), reindex_(reindex), restore_(restore), recover_(recover) {
  backup_.add_option("store", store_, "URL of the store: embedded:PATH or sqlite:PATH").required();
  backup_.add_option("file", file_, "the new file, of embedded: a directory; it must not exist")
      .required()
      .file()
      .valid(why_no_path);
  check_.add_option("store", store_, "URL of the store, or the path of a backup").required().file();
  reindex_.add_option("store", store_, "URL of the store: embedded:PATH").required();
  restore_.add_option("file", file_, "the backup").required().file().valid(why_no_path);
  restore_.add_option("store", store_, "URL of the store: embedded:PATH or sqlite:PATH").required();
  restore_.add_flag("--replace", replace_,
                    "move a store that is there to another name in its folder, and print that");
  restore_.add_flag("--accept-damage", accept_damage_,
                    "restore although the backup has damaged records; their keys stay refused");
  recover_.add_option("store", store_, "URL of the damaged store: embedded:PATH or sqlite:PATH")
      .required();
  recover_.add_option("file", file_, "the new store, of embedded: a directory; it must not exist")
      .required()
      .file()
      .valid(why_no_path);
}

bool StoreFileVerbs::parsed() const {
  return backup_.parsed() || check_.parsed() || reindex_.parsed() || restore_.parsed() ||
         recover_.parsed();
}

int StoreFileVerbs::run(bool json) const {
  // At the limit of a file's size a write fails, and the signal must not end the process.
  std::signal(SIGXFSZ, SIG_IGN);
  raise_descriptor_limit();
  if (backup_.parsed()) return back_up(json);
  if (reindex_.parsed()) return reindex(json);
  if (recover_.parsed()) return recover(json);
  return check_.parsed() ? check(json) : restore(json);
}

int StoreFileVerbs::back_up(bool json) const {
  const auto place = place_of(store_);
  if (!place) return complain_of_store(place.error(), usage);
  std::expected<StoreFileReport, StoreFileError> report;
  {
    Progress progress("idem store: ", "copying");
    report = place->kind->backup(place->path, absolute(file_), shown_by(progress, "pages"));
  }
  if (!report) return complain_of_file(report.error());
  if (json) {
    json::Writer out;
    out.begin_object();
    out.member("file", absolute(file_));
    write_report(out, *report);
    print_object(out);
  } else {
    std::printf("backup %s\n", absolute(file_).c_str());
    print_file_report(*report);
  }
  return end_of(*report);
}

int StoreFileVerbs::check(bool json) const {
  const auto place = place_or_file(store_);
  if (!place) return complain_of_store(place.error(), usage);
  std::expected<StoreFileReport, StoreFileError> report;
  {
    Progress progress("idem store: ", "checking");
    report = place->kind->check(place->path, shown_by(progress, "rows"));
  }
  if (!report) return complain_of_file(report.error());
  if (json) {
    json::Writer out;
    out.begin_object();
    write_report(out, *report);
    print_object(out);
  } else {
    print_file_report(*report);
    if (report->found == 0) std::puts("ok");
  }
  return end_of(*report);
}

int StoreFileVerbs::reindex(bool json) const {
  const auto place = place_of(store_);
  if (!place) return complain_of_store(place.error(), usage);
  if (place->kind->reindex == nullptr) {
    return complain_of_store(store_ + ": only embedded:PATH has an index of its own", usage);
  }
  std::expected<std::uint64_t, StoreFileError> records;
  {
    Progress progress("idem store: ", "reindexing");
    records = place->kind->reindex(place->path, shown_by(progress, "records"));
  }
  if (!records) return complain_of_file(records.error());
  if (json) {
    json::Writer out;
    out.begin_object();
    out.member("store", place->path);
    out.member("records", *records);
    print_object(out);
  } else {
    std::printf("reindexed %s: %llu records\n", place->path.c_str(),
                static_cast<unsigned long long>(*records));
  }
  return done;
}

int StoreFileVerbs::restore(bool json) const {
  const auto place = place_of(store_);
  if (!place) return complain_of_store(place.error(), usage);
  std::expected<Restored, StoreFileError> restored;
  {
    Progress progress("idem store: ", "restoring");
    restored = place->kind->restore({.from = absolute(file_),
                                     .path = place->path,
                                     .keep_old = replace_,
                                     .accept_damage = accept_damage_,
                                     .progress = shown_by(progress, "pages")});
  }
  if (!restored) return complain_of_file(restored.error());
  if (json) {
    json::Writer out;
    out.begin_object();
    out.member("store", place->path);
    out.member("old_store", restored->old_store);
    out.member("unknown", restored->unknown);
    out.name("backup");
    out.begin_object();
    write_report(out, restored->from);
    out.end_object();
    print_object(out);
  } else {
    print_what_a_restore_means(*restored);
  }
  return done;
}

int StoreFileVerbs::recover(bool json) const {
  const auto place = place_of(store_);
  if (!place) return complain_of_store(place.error(), usage);
  const std::string file = absolute(file_);
  std::expected<Recovered, StoreFileError> recovered;
  {
    Progress progress("idem store: ", "recovering");
    recovered = place->kind->recover(
        {.from = place->path, .to = file, .progress = shown_by(progress, "pages")});
  }
  if (!recovered) return complain_of_file(recovered.error());
  if (json) {
    json::Writer out;
    out.begin_object();
    out.member("file", file);
    out.flag("lacks_keys", recovered->lacks_keys);
    const auto moment = [&](const char* name, const std::optional<StoreTime>& at) {
      out.name(name);
      if (at) {
        out.text(to_rfc3339(*at));
      } else {
        out.null();
      }
    };
    moment("lacks_from", recovered->lacks_from);
    out.name("notes");
    out.begin_array();
    for (const auto& note : recovered->notes) out.text(note);
    out.end_array();
    out.name("made");
    out.begin_object();
    write_report(out, recovered->made);
    out.end_object();
    print_object(out);
  } else {
    print_what_was_recovered(*recovered, file, store_);
  }
  if (recovered->lacks_keys && all_records_of(recovered->made) == 0) {
    return complain_of_store(
        file + " has no record: in place of the store it would let every key run again", refused);
  }
  return end_of(recovered->made);
}

}  // namespace idem::cli
