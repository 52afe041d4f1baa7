#include "admin/retries_api.hpp"

#include "admin/json_members.hpp"
#include "admin/query.hpp"
#include "admin/replies.hpp"
#include "core/bytes/digests.hpp"
#include "core/bytes/hex.hpp"
#include "core/bytes/rfc3339.hpp"
#include "json/writer.hpp"

#include <idem/console_limits.hpp>

#include <algorithm>
#include <array>

namespace idem::admin {
namespace {

using json::Writer;
using metrics::Outcome;
using metrics::Retries;
using metrics::Retry;

/// Those of requests whose key had a record.
constexpr std::array outcomes{Outcome::replay,       Outcome::in_progress, Outcome::key_misuse,
                              Outcome::failed_retry, Outcome::unknown,     Outcome::expired};

void write(Writer& out, const Retry& one) {
  out.begin_object();
  out.member("at", to_rfc3339(std::chrono::floor<Millis>(one.at)));
  out.member("ref", to_hex(one.id.bytes));
  out.member("outcome", metrics::name_of(one.outcome));
  out.member("status", one.status);
  out.member("scope", one.scope);
  out.member("route", one.route);
  write_text_or_null(out, "client", one.client);
  out.name("differences");
  out.begin_array();
  for (const auto& difference : one.differences) {
    out.begin_object();
    out.member("part", difference.part);
    out.member("stored", difference.stored);
    out.member("sent", difference.sent);
    out.end_object();
  }
  out.end_array();
  write_text_or_null(out, "why", one.why);
  out.end_object();
}

std::expected<Retries::Which, std::string> which_of(std::string_view query) {
  static constexpr std::array<std::string_view, 2> known{"ref", "outcome"};
  const auto pairs = parse_query(query, known);
  if (!pairs) return std::unexpected(pairs.error());
  Retries::Which which;
  for (const auto& [name, value] : *pairs) {
    if (name == "ref") {
      if (which.id) return std::unexpected("ref: appears twice");
      which.id = parse_handle(value);
      if (!which.id) return std::unexpected("ref: has 32 hexadecimal digits in lower case");
      continue;
    }
    if (which.outcome) return std::unexpected("outcome: appears twice");
    const auto* const found =
        std::ranges::find_if(outcomes, [&](Outcome one) { return metrics::name_of(one) == value; });
    if (found == outcomes.end()) {
      return std::unexpected(
          "outcome: must be replay, in_progress, key_misuse, failed_retry, unknown or expired");
    }
    which.outcome = *found;
  }
  return which;
}

}  // namespace

WireAnswer retries_answer(const Retries& retries, std::string_view query) {
  const auto which = which_of(query);
  if (!which) return invalid(which.error());
  Writer out;
  out.begin_object();
  out.name("retries");
  out.begin_array();
  for (const Retry& one : retries.newest(*which, limits::retries_listed_max)) write(out, one);
  out.end_array();
  out.end_object();
  return json_answer(out.take() + "\n");
}

}  // namespace idem::admin
