#include "cli/settings/parse.hpp"

#include "config/words.hpp"
#include "core/exchange/policy.hpp"
#include "http/head.hpp"

#include <idem/worker_limits.hpp>

#include <algorithm>
#include <cstdlib>

namespace idem::cli {

using config::shown;

bool parse_given_duration(const Given& given, Millis& out, Complaints& complaints) {
  if (given.text.empty() && !given.given) return true;
  const auto parsed = parse_duration(given.text);
  if (!parsed) {
    complaints.add(given.place, parsed.error());
    return false;
  }
  out = *parsed;
  return true;
}

bool parse_given_size(const Given& given, std::uint64_t most, std::uint64_t& out,
                      Complaints& complaints) {
  if (given.text.empty() && !given.given) return true;
  const auto parsed = parse_size(given.text);
  if (!parsed) {
    complaints.add(given.place, parsed.error());
    return false;
  }
  if (*parsed > most) {
    constexpr std::uint64_t mib = 1024UL * 1024;
    const bool in_gib = most % (mib * 1024) == 0;
    complaints.add(given.place, shown(given.text) + " is too much; write at most " +
                                    std::to_string(most / (in_gib ? mib * 1024 : mib)) +
                                    (in_gib ? "GiB" : "MiB"));
    return false;
  }
  out = *parsed;
  return true;
}

bool parse_field_names(const GivenList& given, std::vector<std::string>& out,
                       Complaints& complaints) {
  std::vector<std::string> names;
  for (const auto& item : given.items) {
    if (!http::is_token(item.text)) {
      complaints.add(item.place, shown(item.text) + " is no field name; write one such as X-Name");
      return false;
    }
    const bool twice =
        std::ranges::any_of(names, [&](const auto& name) { return equal_names(name, item.text); });
    if (twice) {
      complaints.add(item.place, shown(item.text) + " is in this list twice; keep one of them");
      return false;
    }
    names.push_back(item.text);
  }
  out = std::move(names);
  return true;
}

std::string to_text(Millis duration) {
  const auto count = duration.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + "s" : std::to_string(count) + "ms";
}

namespace {

/// What is replayed may be widened only by fields that are withheld for what they say.
void parse_replay_headers(const GivenList& given, gateway::Route& out, Complaints& complaints) {
  if (!given.given) return;
  if (!parse_field_names(given, out.replay_fields, complaints)) return;
  if (given.items.size() > limits::replay_fields_max) {
    complaints.add(given.place, "more than " + std::to_string(limits::replay_fields_max) +
                                    " fields to replay; there are only six to add");
  }
  for (const auto& item : given.items) {
    if (is_withheld(item.text) || may_store(item.text)) continue;
    complaints.add(item.place, shown(item.text) +
                                   " belongs to one connection or to the gateway and cannot be "
                                   "replayed; leave it out");
  }
}

void parse_words(const RouteGiven& given, gateway::Route& out) {
  const auto& preset = given.preset.text;
  if (preset == "ietf") out.answers.preset = Preset::ietf;
  if (preset == "stripe") out.answers.preset = Preset::stripe;
  if (preset == "lenient") out.answers.preset = Preset::lenient;
  const auto& mode = given.mode.text;
  if (mode == "conflict") out.mode = gateway::Mode::conflict;
  if (mode == "wait") out.mode = gateway::Mode::wait;
  if (mode == "async") out.mode = gateway::Mode::async;
  const auto truth = [](const Given& text, bool& value) {
    if (!text.text.empty()) value = is_true(text);
  };
  truth(given.require_key, out.require_key);
  truth(given.store_body, out.store_body);
  truth(given.respond_async, out.respond_async);
  truth(given.accept_rerun_after_expiry, out.accepts_rerun_after_expiry);
  const auto& mark = given.dispatch_mark.text;
  if (!mark.empty()) out.separate_dispatch_mark = mark == "separate";
}

void check_lease(const RouteGiven& given, const gateway::Route& route, Complaints& complaints) {
  const auto& about = given.lease.given ? given.lease : given.timeout;
  if (route.lease <= Millis(0)) {
    complaints.add(given.lease.place,
                   "a lease must be above 0, or every attempt could be taken over while it runs; "
                   "write one such as 60s");
  } else if (route.lease <= route.upstream_timeout + gateway::lease_margin(route.lease)) {
    complaints.add(about.place, "the lease of " + to_text(route.lease) +
                                    " must exceed the upstream's timeout of " +
                                    to_text(route.upstream_timeout) +
                                    " by 5s (by a quarter of itself when shorter than 20s), so "
                                    "that no attempt outlives its lease");
  }
}

/// By what holds for the route, wherever it was said: the defaults' tombstone under a route that
/// takes their acknowledgement back is as short.
void check_tombstone(const RouteGiven& given, const gateway::Route& route, Complaints& complaints) {
  const auto& accepted = given.accept_rerun_after_expiry;
  const bool said_here = given.tombstone.given || accepted.given;
  if (!said_here || route.accepts_rerun_after_expiry ||
      route.tombstone >= limits::tombstone_unacknowledged_min) {
    return;
  }
  complaints.add(given.tombstone.given ? given.tombstone.place : accepted.place,
                 "a tombstone of " + to_text(route.tombstone) +
                     " lets a key run again that soon after its retention; write 24h or more, or "
                     "accept_rerun_after_expiry: true (--accept-rerun-after-expiry) beside it if "
                     "that is meant");
}

void parse_times(const RouteGiven& given, gateway::Route& out, Complaints& complaints) {
  const bool timeout = parse_given_duration(given.timeout, out.upstream_timeout, complaints);
  const bool lease = parse_given_duration(given.lease, out.lease, complaints);
  if (timeout && out.upstream_timeout <= Millis(0)) {
    complaints.add(given.timeout.place,
                   "the upstream's timeout must be above 0; write one such as "
                   "30s");
  } else if (timeout && lease && !(given.lease.text.empty() && given.timeout.text.empty())) {
    check_lease(given, out, complaints);
  }
  if (parse_given_duration(given.retention, out.retention, complaints) &&
      out.retention <= Millis(0)) {
    complaints.add(given.retention.place,
                   "the retention must be above 0, or no answer would be replayed; write one such "
                   "as 24h");
  }
  if (parse_given_duration(given.wait_max, out.wait_max, complaints) &&
      out.wait_max > limits::wait_cap) {
    complaints.add(
        given.wait_max.place,
        shown(given.wait_max.text) + " is too long; write at most " + to_text(limits::wait_cap));
  }
  if (out.mode == gateway::Mode::wait && out.wait_max <= Millis(0)) {
    complaints.add(given.wait_max.given ? given.wait_max.place : given.mode.place,
                   "mode wait needs a wait_max above 0; write one such as 30s");
  }
  if (parse_given_duration(given.tombstone, out.tombstone, complaints)) {
    check_tombstone(given, out, complaints);
  }
}

void parse_async(const RouteGiven& given, gateway::Route& out, Complaints& complaints) {
  const auto number = [](const Given& text, std::size_t& value) {
    if (!text.text.empty()) value = std::strtoull(text.text.c_str(), nullptr, 10);
  };
  number(given.async_concurrency, out.async_running_max);
  number(given.async_tenant_concurrency, out.async_tenant_max);
  const auto& kept = given.async_keep_headers;
  if (!kept.given) return;
  if (!parse_field_names(kept, out.async_keep_fields, complaints)) return;
  if (kept.items.size() > limits::async_keep_fields_max) {
    complaints.add(kept.place, "more than " + std::to_string(limits::async_keep_fields_max) +
                                   " fields to keep; name the credentials that the upstream needs");
  }
}

}  // namespace

void parse_route(const RouteGiven& given, gateway::Route& out, Complaints& complaints) {
  parse_words(given, out);
  parse_times(given, out, complaints);
  parse_given_size(given.request_body, limits::request_body_bytes_cap, out.request_body_bytes_max,
                   complaints);
  parse_given_size(given.response_body, limits::request_body_bytes_cap, out.response_body_bytes_max,
                   complaints);
  parse_replay_headers(given.replay_headers, out, complaints);
  parse_async(given, out, complaints);
}

}  // namespace idem::cli
