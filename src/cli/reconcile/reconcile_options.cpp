#include "cli/reconcile/reconcile_options.hpp"

#include "cli/settings/units.hpp"
#include "core/bytes/rfc3339.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <map>

namespace idem::cli {
namespace {

using Checked = std::expected<void, std::string>;

Checked wrong(std::string sentence) { return std::unexpected(std::move(sentence)); }

Checked parse_moment(const char* option, const std::string& text, std::optional<StoreTime>& into) {
  if (text.empty()) return {};
  into = parse_rfc3339(text);
  if (into) return {};
  return wrong(std::string(option) + " must be an RFC 3339 time such as 2026-11-01T00:00:00Z");
}

Checked parse_time(const char* option, const std::string& text, Millis& into) {
  if (text.empty()) return {};
  const auto parsed = parse_duration(text);
  if (!parsed) return wrong(std::string(option) + ": " + parsed.error());
  into = *parsed;
  return {};
}

Checked check_source(ReconcileOptions& options) {
  if (options.file.empty() == options.list.url.empty()) {
    return wrong("give the provider's export as a file, or as a list with --url");
  }
  if (!options.list.url.empty()) return {};
  if (options.format.empty()) options.format = options.file.ends_with(".csv") ? "csv" : "jsonl";
  if (options.format == "csv" || options.format == "jsonl") return {};
  return wrong("--format is csv or jsonl");
}

Checked check_match(ReconcileOptions& options) {
  struct Way {
    MatchBy by;
    const char* field;
  };
  static const std::map<std::string, Way> ways{{"key", {MatchBy::key, "key"}},
                                               {"operation", {MatchBy::operation, "operation"}},
                                               {"reference", {MatchBy::reference, "id"}},
                                               {"derived", {MatchBy::derived, "key"}}};
  const auto way = ways.find(options.by);
  if (way == ways.end()) return wrong("--by is key, operation, reference or derived");
  options.match_by = way->second.by;
  if (options.match.empty()) options.match = way->second.field;
  const bool has_scope = !options.scope.empty() || !options.scope_at.empty();
  if (options.match_by == MatchBy::key && (!has_scope || options.operation.empty())) {
    return wrong(
        "--by key: the store has only a digest of scope, operation and key; give "
        "--scope (or --scope-at) and --operation too");
  }
  if (options.match_by == MatchBy::derived && options.phase.empty()) {
    return wrong(
        "--by derived: the provider's key is derived from a phase's name; give its --phase");
  }
  return {};
}

Checked check_absent(const ReconcileOptions& options) {
  if (options.match_by == MatchBy::reference) {
    return wrong(
        "--resolve-absent: most unknown records have no reference, so no line can match them; "
        "compare --by operation, key or derived");
  }
  if (!options.observed) {
    return wrong(
        "--resolve-absent: an absence counts only with the moment at which the export was made; "
        "give it as --observed-at");
  }
  if (!options.rules.from || !options.rules.to) {
    return wrong(
        "--resolve-absent: an absence counts only within the period that the export covers; "
        "give it as --from and --to");
  }
  if (*options.rules.to > *options.observed - options.delay) {
    return wrong(
        "--resolve-absent: the provider may list a charge late; --to must lie before "
        "--observed-at by at least --export-delay, by default 24h");
  }
  return {};
}

Checked check_resolving(const ReconcileOptions& options) {
  if (!options.resolve) {
    if (options.resolve_absent) return wrong("--resolve-absent goes with --resolve");
    return {};
  }
  if (options.response_status == 0) {
    return wrong(
        "--resolve: the client's next retry needs an answer: give its --response-status; the "
        "export's line becomes its body");
  }
  if (options.happened.empty()) {
    return wrong(
        "--resolve: a refused line settles nothing; name the lines that report that money moved, "
        "with --status and --happened");
  }
  return options.resolve_absent ? check_absent(options) : Checked{};
}

}  // namespace

void ReconcileOptions::declare(const Command& command) {
  command.add_option("export", file, "the provider's export; - is standard input").file();
  command.add_option("--format", format, "csv or jsonl; else by the file's name")
      .one_of({"csv", "jsonl"});
  command.add_option("--url", list.url, "a list of the provider's API instead of a file");
  command.add_option("--items", list.items, "JSON Pointer to the items of a page").show_default();
  command.add_option("--next", list.next, "JSON Pointer to the next page: a URL or a path")
      .show_default();
  command.add_option("--next-parameter", list.next_parameter,
                     "--next is a cursor; send it in this parameter of --url");
  command.add_option("--allow-host", list.allowed_hosts,
                     "HOST:PORT of further pages, besides that of --url; repeatable");
  command.add_option("--auth-file", list.auth_file, "file with the value of Authorization").file();
  command
      .add_option("--ca-file", list.ca_file,
                  "PEM file of the CAs for https; by default the system's")
      .file();
  command.add_option("--page-timeout", list.timeout, "time for each page; 30s by default");

  command.add_option("--by", by, "the value on both sides: key, operation, reference or derived")
      .one_of({"key", "operation", "reference", "derived"})
      .show_default();
  command.add_option("--match", match,
                     "the export's field of --by: a column, a member or a JSON Pointer");
  command.add_option("--phase", phase,
                     "the phase whose derived key the provider received (--by derived)");
  command.add_option(
      "--our-reference", our_reference,
      "JSON Pointer into the stored answer (--by reference); by default the record's "
      "upstream_reference");
  command.add_option("--scope", scope, "only records of this scope");
  command.add_option("--scope-at", scope_at, "the export's field of the scope (--by key)");
  command.add_option("--operation", operation, "only records of this operation");
  command.add_option("--amount", amount,
                     "the export's field of the amount; by default no amount is compared");
  command.add_option("--our-amount", our_amount, "JSON Pointer into the stored answer")
      .show_default();
  command.add_option("--scale", scale, "our amount is the export's times 10^N: 2 for 12.50 as 1250")
      .between(-18, 18);
  command.add_option("--currency", currency, "the export's field of the currency");
  command.add_option("--our-currency", our_currency, "JSON Pointer into the stored answer")
      .show_default();
  command.add_option("--status", status, "the export's field of the status");
  command.add_option("--happened", happened, "a status that means that money moved; repeatable");
  command.add_option("--refused", refused,
                     "a status that means that no money moved and none will; repeatable. Lines of "
                     "other statuses are listed and decide nothing");
  command.add_option("--id", id, "the export's field of the provider's id");
  command.add_option("--time", time, "the export's field of the time: RFC 3339 or Unix seconds");
  command.add_option("--from", from, "begin of the period, an RFC 3339 time");
  command.add_option("--to", to, "end of the period, excluded");
  command.add_option("--slack", slack, "how far apart the two sides' times may be; 5m by default");
  command.add_option("--rows", rows, "most findings that the table shows").show_default();
  declare_settling(command);
}

void ReconcileOptions::declare_settling(const Command& command) {
  command.add_flag("--resolve", resolve,
                   "complete unknown, pending and failed_retryable records that the provider has");
  command.add_flag("--resolve-absent", resolve_absent,
                   "with --resolve: settle unknown records that the provider does not have as "
                   "failed_retryable: a retry runs again");
  command
      .add_option(
          "--response-status", response_status,
          "status of the answer that is stored for a completed record; its body is the line")
      .between(200, 599);
  command.add_option("--response-header", response_headers,
                     "\"Name: value\" of that answer; repeatable");
  command.add_option("--observed-at", observed_at, "when the export was made");
  command.add_option("--export-delay", export_delay,
                     "how late the export may list a charge (--resolve-absent); 24h by default");
  command.add_option("--reason", reason, "why, for the evidence log").show_default();
}

Checked ReconcileOptions::check() {
  rules.slack = limits::comparison_slack_default;
  rules.amount = !amount.empty();
  rules.currency = !currency.empty();
  for (const auto& step :
       {check_source(*this), check_match(*this), parse_moment("--from", from, rules.from),
        parse_moment("--to", to, rules.to), parse_moment("--observed-at", observed_at, observed),
        parse_time("--slack", slack, rules.slack),
        parse_time("--export-delay", export_delay, delay),
        parse_time("--page-timeout", list.timeout, page_timeout), check_resolving(*this)}) {
    if (!step) return step;
  }
  if (rules.from && rules.to && *rules.from >= *rules.to) return wrong("--from lies before --to");
  if (status.empty() != happened.empty()) {
    return wrong("--status and --happened belong together: which values mean that money moved?");
  }
  for (const std::string& one : refused) {
    if (status.empty()) return wrong("--refused goes with --status and --happened");
    if (std::ranges::find(happened, one) != happened.end()) {
      return wrong("--refused " + one + " is also --happened; a status means one of both");
    }
  }
  return {};
}

}  // namespace idem::cli
