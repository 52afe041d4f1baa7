#include "admin/audit_json.hpp"

#include "admin/json_members.hpp"
#include "json/writer.hpp"

namespace idem::admin {
namespace {

using json::Writer;

void write_next(Writer& out, std::optional<std::uint64_t> next) {
  write_text_or_null(out, "next", next ? std::to_string(*next) : "");
}

void write_line(Writer& out, const ShownLine& shown) {
  AuditLine none;
  none.entry.what = "unreadable";
  const AuditLine& line = shown.is ? *shown.is : none;
  const AuditEntry& entry = line.entry;
  out.begin_object();
  out.member("seq", shown.seq);
  out.member("at", line.at);
  out.member("who", entry.who);
  out.member("role", entry.role);
  out.member("login", entry.login);
  out.member("peer", entry.peer);
  out.member("what", entry.what);
  out.member("ref", entry.ref);
  out.member("reason", entry.reason);
  out.member("before", entry.before);
  out.member("after", entry.after);
  write_optional(out, "of", entry.of);
  out.member("hash", line.hash);
  out.end_object();
}

}  // namespace

std::string audit_page(std::span<const ShownLine> lines, std::optional<std::uint64_t> next) {
  Writer out;
  out.begin_object();
  out.name("audit");
  out.begin_array();
  for (const ShownLine& line : lines) write_line(out, line);
  out.end_array();
  write_next(out, next);
  out.end_object();
  return out.take() + "\n";
}

std::string audit_lines_page(std::string_view first_link, std::span<const JournalLine> lines,
                             std::optional<std::uint64_t> next) {
  Writer out;
  out.begin_object();
  out.member("begins", first_link);
  out.name("lines");
  out.begin_array();
  for (const JournalLine& line : lines) {
    out.begin_object();
    out.member("seq", line.seq);
    out.member("line", line.bytes);
    out.end_object();
  }
  out.end_array();
  write_next(out, next);
  out.end_object();
  return out.take() + "\n";
}

std::string audit_verdict(const AuditChain::Verdict& verdict) {
  Writer out;
  out.begin_object();
  out.member("lines", verdict.lines);
  write_optional(out, "first_bad", verdict.first_bad);
  write_text_or_null(out, "why", verdict.first_bad ? verdict.why : "");
  write_optional(out, "proven_from", verdict.proven_from);
  out.name("last");
  if (verdict.last > 0) {
    out.begin_object();
    out.member("seq", verdict.last);
    out.member("hash", verdict.hash);
    out.end_object();
  } else {
    out.null();
  }
  out.end_object();
  return out.take() + "\n";
}

}  // namespace idem::admin
