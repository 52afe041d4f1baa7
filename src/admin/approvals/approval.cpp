#include "admin/approvals/approval.hpp"

#include "json/value.hpp"
#include "json/writer.hpp"

#include <idem/job_limits.hpp>

#include <array>

namespace idem::admin {
namespace {

using json::Value;
using json::Writer;

constexpr std::array kinds{ApprovalKind::resolve, ApprovalKind::release, ApprovalKind::jobs,
                           ApprovalKind::discard};
constexpr std::array ends{ApprovalEnd::decided, ApprovalEnd::refused, ApprovalEnd::rejected};

Writer approval_line(std::string_view kind) {
  Writer out;
  out.begin_object();
  out.member("line", kind);
  return out;
}

std::string approval_line_end(Writer& out) {
  out.end_object();
  return out.take();
}

void write_approver(Writer& out, const Approver& by) {
  out.member("who", by.who);
  out.member("role", by.role);
  out.member("login", by.login);
  out.member("peer", by.peer);
}

/// The members of a line; a missing one is an empty text, which no reader takes for an approval.
std::string text_of(const Value& line, std::string_view name) {
  const Value* const member = line.find(name);
  const auto* const text = member == nullptr ? nullptr : std::get_if<std::string>(&member->is);
  return text == nullptr ? std::string() : *text;
}

template <class All>
auto parse_name(const All& all, std::string_view name) -> std::optional<typename All::value_type> {
  for (const auto one : all) {
    if (name_of(one) == name) return one;
  }
  return std::nullopt;
}

std::optional<ApprovalRequest> read_request(const Value& line) {
  const auto kind = parse_name(kinds, text_of(line, "kind"));
  const Value* const member = line.find("needs");
  const auto* const needs = member == nullptr ? nullptr : std::get_if<std::int64_t>(&member->is);
  const Value* const moment = line.find("given_at_ms");
  const auto* const given = moment == nullptr ? nullptr : std::get_if<std::int64_t>(&moment->is);
  if (!kind || needs == nullptr || *needs < 2 || given == nullptr) return std::nullopt;
  ApprovalRequest request{.id = text_of(line, "id"),
                          .kind = *kind,
                          .needs = static_cast<unsigned>(*needs),
                          .by = {text_of(line, "who"), text_of(line, "role"),
                                 text_of(line, "login"), text_of(line, "peer")},
                          .ref = text_of(line, "ref"),
                          .seen = text_of(line, "seen"),
                          .order = text_of(line, "order"),
                          .reason = text_of(line, "reason"),
                          .given_at = StoreTime(Millis(*given))};
  const bool is_whole = !request.id.empty() && !request.by.who.empty() && !request.seen.empty() &&
                        !request.order.empty();
  return is_whole ? std::optional(std::move(request)) : std::nullopt;
}

}  // namespace

std::string_view name_of(ApprovalKind kind) noexcept {
  switch (kind) {
    case ApprovalKind::resolve:
      return "resolve";
    case ApprovalKind::release:
      return "release";
    case ApprovalKind::jobs:
      return "jobs";
    case ApprovalKind::discard:
      return "discard";
  }
  return "";
}

std::string_view name_of(ApprovalEnd end) noexcept {
  switch (end) {
    case ApprovalEnd::decided:
      return "decided";
    case ApprovalEnd::refused:
      return "refused";
    case ApprovalEnd::rejected:
      return "rejected";
  }
  return "";
}

std::string write_request(const ApprovalRequest& request) {
  Writer out = approval_line("ask");
  out.member("id", request.id);
  out.member("kind", name_of(request.kind));
  out.member("needs", request.needs);
  write_approver(out, request.by);
  out.member("ref", request.ref);
  out.member("seen", request.seen);
  out.member("order", request.order);
  out.member("reason", request.reason);
  out.member("given_at_ms", request.given_at.time_since_epoch().count());
  return approval_line_end(out);
}

std::string write_approve(const Approver& by, std::string_view reason) {
  Writer out = approval_line("approve");
  write_approver(out, by);
  out.member("reason", reason);
  return approval_line_end(out);
}

std::string write_deciding(std::string_view who) {
  Writer out = approval_line("deciding");
  out.member("who", who);
  return approval_line_end(out);
}

std::string write_end(ApprovalEnd end, std::string_view who, int status, std::string_view text) {
  Writer out = approval_line("end");
  out.member("how", name_of(end));
  out.member("who", who);
  out.member("status", status);
  out.member("text", text);
  return approval_line_end(out);
}

void ApprovalFold::see(const JournalLine& line) {
  set_now(line.at);
  if (line.seq <= last_) return;
  const bool is_next = line.seq == last_ + 1;
  last_ = line.seq;
  if (!trouble_.empty()) return;
  const std::string damage = line.why.empty() ? "it is damaged" : "it " + line.why;
  const std::string wrong = !is_next          ? "lines in front of it are missing"
                            : line.is_damaged ? damage
                                              : take(line.bytes, line.at);
  if (!wrong.empty()) trouble_ = "line " + std::to_string(line.seq) + ": " + wrong;
}

std::string ApprovalFold::take(std::string_view bytes, StoreTime at) {
  const auto line = json::parse(bytes);
  if (!line) return "it is no JSON";
  const std::string kind = text_of(*line, "line");
  const std::string who = text_of(*line, "who");
  if (kind == "ask") {
    if (request_) return "it asks a second time";
    request_ = read_request(*line);
    if (!request_) return "it is not whole";
    asked_at_ = at;
    given_by_.push_back(request_->by.who);
    return "";
  }
  if (!request_ || end_) return "it is at the wrong place";
  if (kind == "approve") {
    if (who.empty() || has_given(who)) return "it is of nobody, or repeats an approval";
    if (is_enough()) return "it comes too late";
    if (at < ends_at()) given_by_.push_back(who);
    return "";
  }
  if (kind == "deciding") {
    if (!is_enough()) return "it decides without enough approvals";
    deciding_since_ = at;
    return "";
  }
  const auto how = parse_name(ends, text_of(*line, "how"));
  if (kind != "end" || !how) return "this version does not know its form";
  if (*how == ApprovalEnd::decided && !deciding_since_) return "it was decided by nobody";
  end_ = how;
  ended_by_ = who;
  end_text_ = text_of(*line, "text");
  return "";
}

StoreTime ApprovalFold::ends_at() const { return asked_at_ + limits::approval_max; }

bool ApprovalFold::has_given(std::string_view who) const {
  return std::ranges::find(given_by_, who) != given_by_.end();
}

bool ApprovalFold::is_being_decided() const {
  return !end_ && deciding_since_ && now_ - *deciding_since_ <= limits::approval_deciding_max;
}

// Once the decision was begun it is finished, however late that is.
bool ApprovalFold::has_expired() const { return !end_ && !deciding_since_ && now_ >= ends_at(); }

std::string_view ApprovalFold::state() const {
  if (!trouble_.empty()) return "damaged";
  if (end_) return name_of(*end_);
  if (has_expired()) return "expired";
  return is_enough() ? "deciding" : "waiting";
}

}  // namespace idem::admin
