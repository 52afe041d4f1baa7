#include "cli/settings/parse.hpp"

#include "cli/settings/units.hpp"
#include "config/words.hpp"
#include "core/exchange/policy.hpp"
#include "http/head.hpp"
#include "http/tls/tls.hpp"

#include <idem/worker_limits.hpp>

#include <algorithm>
#include <bitset>
#include <cstdlib>
#include <tuple>

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

bool parse_given_number(const Given& given, std::size_t& out) {
  // config::check() has already refused other texts.
  if (!given.text.empty()) out = std::strtoull(given.text.c_str(), nullptr, 10);
  return true;
}

void check_ca(const Given& file, Complaints& complaints) {
  if (file.text.empty()) return;
  const auto context = http::TlsContext::for_client({file.text, true});
  if (!context) complaints.add(file.place, context.error());
}

void parse_server_files(const std::string& section, const Given& cert, const Given& key,
                        const Given& client_ca, http::TlsContext::ServerFiles& out,
                        Complaints& complaints) {
  out = {cert.text, key.text, client_ca.text};
  std::string flag = "--" + section;
  std::ranges::replace(flag, '_', '-');
  const std::string both =
      flag + "-cert and " + flag + "-key (" + section + ".cert and " + section + ".key)";
  if (cert.text.empty() != key.text.empty()) {
    complaints.add(cert.given ? cert.place : key.place,
                   both + " belong together: give both files or neither");
  }
  if (!client_ca.text.empty() && cert.text.empty()) {
    complaints.add(client_ca.place, "the clients' CA needs " + both);
  }
}

void parse_networks(const GivenList& given, std::vector<http::Network>& out,
                    Complaints& complaints) {
  if (given.items.size() > limits::trusted_proxies_max) {
    complaints.add(given.place, "at most " + std::to_string(limits::trusted_proxies_max) +
                                    " networks of trusted proxies are allowed");
  }
  for (const auto& item : given.items) {
    auto network = http::Network::parse(item.text);
    if (network) {
      out.push_back(*network);
    } else {
      complaints.add(item.place, network.error());
    }
  }
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

/// Only fields that are withheld because of their meaning may be added to replays.
void parse_replay_headers(const GivenList& given, gateway::Route& out, Complaints& complaints) {
  if (!given.given) return;
  if (!parse_field_names(given, out.replay_fields, complaints)) return;
  if (given.items.size() > limits::replay_fields_max) {
    complaints.add(given.place, "more than " + std::to_string(limits::replay_fields_max) +
                                    " fields to replay; only six can be added");
  }
  for (const auto& item : given.items) {
    if (is_withheld(item.text) || may_store(item.text)) continue;
    complaints.add(item.place, shown(item.text) +
                                   " belongs to one connection or to the gateway and cannot be "
                                   "replayed; leave it out");
  }
}

/// The rows whose value was parsed into their member, or that gave none.
using Parsed = std::bitset<route_settings.size()>;

Parsed parse_members(const RouteGiven& given, gateway::Route& out, Complaints& complaints) {
  Parsed parsed;
  for (std::size_t row = 0; row < route_settings.size(); ++row) {
    const auto& [member, shape] = std::tie(route_settings[row].member, route_settings[row].shape);
    if (const auto* const truth = std::get_if<bool gateway::Route::*>(&member)) {
      if (!given.at(row).text.empty()) out.*(*truth) = is_true(given.at(row));
      parsed[row] = true;
    } else if (const auto* const time = std::get_if<Millis gateway::Route::*>(&member)) {
      parsed[row] = parse_given_duration(given.at(row), out.*(*time), complaints);
    } else if (const auto* const count = std::get_if<std::size_t gateway::Route::*>(&member)) {
      parsed[row] = shape.kind == config::Shape::Kind::size
                        ? parse_given_size(given.at(row), shape.max, out.*(*count), complaints)
                        : parse_given_number(given.at(row), out.*(*count));
    }
  }
  return parsed;
}

void parse_words(const RouteGiven& given, gateway::Route& out) {
  const auto& preset = given.one("preset").text;
  if (preset == "ietf") out.answers.preset = Preset::ietf;
  if (preset == "stripe") out.answers.preset = Preset::stripe;
  if (preset == "lenient") out.answers.preset = Preset::lenient;
  const auto& mode = given.one("mode").text;
  if (mode == "conflict") out.mode = gateway::Mode::conflict;
  if (mode == "wait") out.mode = gateway::Mode::wait;
  if (mode == "async") out.mode = gateway::Mode::async;
  const auto& enforce = given.one("enforce").text;
  if (!enforce.empty()) {
    out.enforce = enforce == "shadow" ? gateway::Enforce::shadow : gateway::Enforce::on;
  }
  const auto& mark = given.one("dispatch_mark").text;
  if (!mark.empty()) out.separate_dispatch_mark = mark == "separate";
}

void check_lease(const RouteGiven& given, const gateway::Route& route, Complaints& complaints) {
  const auto& about = given.one("lease").given ? given.one("lease") : given.one("timeout");
  if (route.lease <= Millis(0)) {
    complaints.add(given.one("lease").place,
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

/// Checks the route's effective values, wherever they come from: a route that takes back the
/// acknowledgement of the defaults must not inherit their short tombstone.
void check_tombstone(const RouteGiven& given, const gateway::Route& route, Complaints& complaints) {
  const auto& accepted = given.one("accept_rerun_after_expiry");
  const bool is_given_here = given.one("tombstone").given || accepted.given;
  if (!is_given_here || route.accepts_rerun_after_expiry ||
      route.tombstone >= limits::tombstone_unacknowledged_min) {
    return;
  }
  complaints.add(given.one("tombstone").given ? given.one("tombstone").place : accepted.place,
                 "a tombstone of " + to_text(route.tombstone) +
                     " lets a key run again that soon after its retention; write 24h or more, or "
                     "accept_rerun_after_expiry: true (--accept-rerun-after-expiry) beside it if "
                     "that is intended");
}

void check_times(const RouteGiven& given, const Parsed& parsed, const gateway::Route& route,
                 Complaints& complaints) {
  const Given& timeout = given.one("timeout");
  const bool is_leased = !(given.one("lease").text.empty() && timeout.text.empty());
  if (parsed[RouteRow("timeout")] && route.upstream_timeout <= Millis(0)) {
    complaints.add(timeout.place,
                   "the upstream's timeout must be above 0; write one such as "
                   "30s");
  } else if (parsed[RouteRow("timeout")] && parsed[RouteRow("lease")] && is_leased) {
    check_lease(given, route, complaints);
  }
  if (parsed[RouteRow("retention")] && route.retention <= Millis(0)) {
    complaints.add(given.one("retention").place,
                   "the retention must be above 0, or no answer would be replayed; write one such "
                   "as 24h");
  }
  const Given& wait = given.one("wait_max");
  if (parsed[RouteRow("wait_max")] && route.wait_max > limits::wait_cap) {
    complaints.add(wait.place,
                   shown(wait.text) + " is too long; write at most " + to_text(limits::wait_cap));
  }
  if (route.mode == gateway::Mode::wait && route.wait_max <= Millis(0)) {
    complaints.add(wait.given ? wait.place : given.one("mode").place,
                   "mode wait needs a wait_max above 0; write one such as 30s");
  }
  if (parsed[RouteRow("tombstone")]) check_tombstone(given, route, complaints);
}

/// Stripe's client takes any 2xx for the object that it asked for: a 202 would be a payment whose
/// `id` and `status` are missing. Checks effective values where this route gives one of them.
void check_preset(const RouteGiven& given, const gateway::Route& route, Complaints& complaints) {
  if (route.answers.preset != Preset::stripe || !route.ever_async()) return;
  const bool by_mode = route.mode == gateway::Mode::async;
  const Given& async = by_mode ? given.one("mode") : given.one("respond_async");
  const Given& preset = given.one("preset");
  if (!async.given && !preset.given) return;  // Inherited: the complaint is about the defaults.
  const std::string what = by_mode ? "mode async" : "respond_async";
  complaints.add(async.given ? async.place : preset.place,
                 what +
                     " answers 202 before the work ran, and Stripe's client takes that for the "
                     "payment; write preset ietf with it, or leave out " +
                     what + " (mode wait lets a duplicate wait)");
}

/// A 202 in place of the upstream's answer is another contract with the clients: nothing that is
/// seen while their requests pass says how they would take it. Checks effective values where this
/// route gives one of them.
void check_shadow(const RouteGiven& given, const gateway::Route& route, Complaints& complaints) {
  if (!route.in_shadow() || route.mode != gateway::Mode::async) return;
  const Given& enforce = given.one("enforce");
  const Given& mode = given.one("mode");
  if (!enforce.given && !mode.given) return;  // Inherited: the complaint is about the defaults.
  complaints.add(enforce.given ? enforce.place : mode.place,
                 "enforce shadow lets every request pass, and mode async would answer 202 in place "
                 "of the upstream; write mode conflict or wait while the route is in shadow");
}

void parse_async_fields(const GivenList& kept, gateway::Route& out, Complaints& complaints) {
  if (!kept.given) return;
  if (!parse_field_names(kept, out.async_keep_fields, complaints)) return;
  if (kept.items.size() > limits::async_keep_fields_max) {
    complaints.add(kept.place, "more than " + std::to_string(limits::async_keep_fields_max) +
                                   " fields to keep; name the credentials that the upstream needs");
  }
}

}  // namespace

void parse_route(const RouteGiven& given, gateway::Route& out, Complaints& complaints) {
  const Parsed parsed = parse_members(given, out, complaints);
  parse_words(given, out);
  check_preset(given, out, complaints);
  check_shadow(given, out, complaints);
  check_times(given, parsed, out, complaints);
  parse_replay_headers(given.list("replay_headers"), out, complaints);
  parse_async_fields(given.list("async.keep_headers"), out, complaints);
}

}  // namespace idem::cli
