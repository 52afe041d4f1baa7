#include "cli/exit_code.hpp"
#include "cli/reconcile/reconcile_command.hpp"
#include "core/bytes/base64.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/bytes/utf8.hpp"
#include "core/record/stored_fence.hpp"
#include "json/writer.hpp"

#include <idem/limits.hpp>

#include <algorithm>

/// The only part of `idem reconcile` that changes records: it sends evidence, which the server
/// judges.
namespace idem::cli {
namespace {

using compare::Finding;

void write_response(json::Writer& out, const ReconcileOptions& options, const std::string& body) {
  out.name("response");
  out.begin_object();
  out.member("status", options.response_status);
  out.name("headers");
  out.begin_array();
  auto fields = options.response_headers;
  if (fields.empty()) fields.emplace_back("Content-Type: application/json");
  for (const std::string& line : fields) write_header(out, line);
  out.end_array();
  const bool has_body = options.response_status != 204 && options.response_status != 304;
  out.member("body_b64", has_body ? to_base64(body) : "");
  out.end_object();
}

/// Whether a line may settle the record: exactly one that happened, and a state that accepts it.
bool is_positive(const Finding& finding) {
  if (!finding.ours || finding.kind == compare::Kind::duplicate) return false;
  return accepts_positive_evidence(finding.ours->state) &&
         std::ranges::count(finding.theirs, true, &compare::Theirs::happened) == 1;
}

bool is_absent(const Finding& finding) {
  return finding.kind == compare::Kind::undecided && finding.ours &&
         finding.ours->state == State::unknown && finding.theirs.empty();
}

}  // namespace

bool accepts_positive_evidence(State state) noexcept {
  return state == State::unknown || state == State::failed_retryable || state == State::pending;
}

std::string ReconcileCommand::why_not_absent(const OpenExport& opened,
                                             const compare::Ours& ours) const {
  if (!report_.complete()) return "the export was not read completely";
  if (!opened.list->states_its_end) return "the list does not say where it ends";
  // If one line is missing, others may be: the export is cut off, or of another account.
  if (report_.result.count(compare::Kind::ours_only) > 0) {
    return "the export lacks lines of records that ran";
  }
  // An unmatched line may be the missing one under another name. If no line matched at all, the two
  // sides perhaps share no names.
  if (report_.result.lines_unmet > 0) return "there are lines that match no record";
  if (report_.result.lines_met == 0) return "no line matches a record";
  const auto& rules = options_.rules;
  // The export must cover the whole time in which it may have run, also by the provider's clock.
  const bool began_within = !rules.from || ours.created_at >= *rules.from + rules.slack;
  const bool ended_within = !rules.to || ours.locked_until + rules.slack <= *rules.to;
  return began_within && ended_within ? "" : "it may have run outside of the period";
}

std::expected<void, int> ReconcileCommand::resolve(const OpenExport& opened) {
  for (std::size_t i = 0; i < report_.result.findings.size(); ++i) {
    const Finding& finding = report_.result.findings[i];
    const bool absent = options_.resolve_absent && is_absent(finding);
    if (!is_positive(finding) && !absent) continue;
    auto settled = settle(opened, i);
    if (!settled) return std::unexpected(settled.error());
    report_.settled.emplace(i, std::move(*settled));
    progress("records settled", report_.settled.size());
  }
  return {};
}

std::expected<Settled, int> ReconcileCommand::settle(const OpenExport& opened, std::size_t number) {
  const Finding& finding = report_.result.findings[number];
  const compare::Ours& ours = *finding.ours;
  const std::string of_export =
      opened.name + " (sha256 " + report_.digest + ", " + std::to_string(report_.lines) + " lines)";
  json::Writer order;
  order.begin_object();
  order.member("fence", stored_fence(ours.fence));
  order.member("reason", options_.reason);
  const std::string as = is_absent(finding) ? "failed_retryable" : "completed";
  order.member("as", as);
  auto observed = options_.observed;
  std::string evidence;
  if (is_absent(finding)) {
    std::string why_not = why_not_absent(opened, ours);
    if (!why_not.empty()) return Settled{"", std::move(why_not)};
    evidence = "no line in the export " + of_export + " that was made at " + to_rfc3339(*observed);
    // Later work may not be listed yet.
    observed = *observed - options_.delay;
  } else {
    const auto theirs = std::ranges::find(finding.theirs, true, &compare::Theirs::happened);
    const auto kept = kept_.find(theirs->line);
    if (kept == kept_.end()) return Settled{"", "its line was not kept; settle it by hand"};
    evidence = "line " + std::to_string(theirs->line) + " (sha256 " + kept->second.digest +
               ") of the export " + of_export;
    if (!theirs->id.empty()) evidence += ": " + theirs->id;
    write_response(order, options_, kept->second.json);
  }
  order.member("evidence", utf8_of(evidence, limits::evidence_bytes_max));
  if (observed) order.member("observed_at", to_rfc3339(*observed));
  order.end_object();
  const std::string body = order.take();
  const auto answer = ask("/v1/keys/" + to_hex(ours.ref.bytes) + "/resolve", &body);
  if (!answer) return std::unexpected(answer.error());
  if (answer->status == 200) return Settled{as, ""};
  return Settled{"", "refused: " + sentence_of(*answer)};
}

}  // namespace idem::cli
