#include "cli/commands/store_copy_print.hpp"

#include "json/writer.hpp"

#include <cstdio>

namespace idem::cli {
namespace {

void print_number(const char* name, std::uint64_t value) {
  std::printf("%s %llu\n", name, static_cast<unsigned long long>(value));
}

const char* what_now(const CopyReport& report) {
  if (report.was_finished) return "The copy was finished before: use TO.";
  if (!report.is_finished) {
    return "The copy is not finished, and no start takes it. End what uses FROM, and run this "
           "without --prepare.";
  }
  if (report.is_closed) {
    return "FROM is closed: no gateway, worker or service takes it any more. Write the URL of TO, "
           "and its store_id where you have one.";
  }
  return "FROM is still open: only one of the two may be used for the same clients, because "
         "retries of keys that came to the other one would run again.";
}

void print_text(const CopyReport& report) {
  if (!report.was_finished) {
    print_number("records", report.pass.records);
    print_number("evidence", report.pass.evidence);
    print_number("journal_lines", report.pass.journal_lines);
    if (report.pass.running != 0) print_number("running", report.pass.running);
    std::printf("digest %s\n", to_hex(report.pass.target).c_str());
  }
  std::printf("store_id %s\n", report.store_id.c_str());
  std::puts(what_now(report));
}

void print_copy_as_json(const CopyReport& report) {
  const CopyPass& pass = report.pass;
  json::Writer out;
  out.begin_object();
  out.member("from", report.from);
  out.member("to", report.to);
  out.member("store_id", report.store_id);
  out.flag("finished", report.is_finished);
  out.flag("from_closed", report.is_closed);
  if (!report.was_finished) {
    out.member("records", pass.records);
    out.member("put", pass.put);
    out.member("removed", pass.removed);
    out.member("running", pass.running);
    out.member("evidence", pass.evidence);
    out.member("journal_lines", pass.journal_lines);
    out.member("asked_again", pass.asked_again);
    out.member("digest", to_hex(pass.target));
  }
  out.end_object();
  const std::string text = out.take() + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

void print_undone(bool json) {
  std::puts(json ? R"({"from_closed":false,"finished":false})"
                 : "FROM is open again. TO, if it is there, is an unfinished copy.");
}

void print(const CopyReport& report, bool json) {
  json ? print_copy_as_json(report) : print_text(report);
}

}  // namespace idem::cli
