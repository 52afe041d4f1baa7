#include "admin/shadow.hpp"

#include "admin/json_members.hpp"
#include "admin/query.hpp"
#include "admin/replies.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/exchange/problem.hpp"
#include "json/writer.hpp"

#include <array>

namespace idem::admin {
namespace {

using json::Writer;
using metrics::NotObserved;
using metrics::ShadowCounts;
using metrics::Shadowed;
using metrics::ShadowReport;

void write_shadow_counts(Writer& out, const ShadowCounts& counts) {
  out.member("requests", counts.requests());
  for (std::size_t i = 0; i < metrics::shadowed_count; ++i) {
    out.member(name_of(static_cast<Shadowed>(i)), counts.by_decision[i]);
  }
  out.member("unknown", counts.unknown);
}

void write_tenants(Writer& out, const ShadowReport::Route& route) {
  out.name("tenants");
  out.begin_array();
  for (const auto& tenant : route.tenants) {
    out.begin_object();
    write_text_or_null(out, "scope", tenant.scope);
    write_shadow_counts(out, tenant.counts);
    out.name("clients");
    out.begin_array();
    for (const auto& client : tenant.clients) {
      out.begin_object();
      out.member("client", client.name);
      write_shadow_counts(out, client.counts);
      out.end_object();
    }
    out.end_array();
    out.end_object();
  }
  out.end_array();
}

void write_examples(Writer& out, const ShadowReport::Route& route) {
  out.name("examples");
  out.begin_array();
  for (const auto& [kind, newest] : route.examples) {
    for (const auto& one : newest) {
      out.begin_object();
      out.member("kind", kind);
      out.member("at", to_rfc3339(std::chrono::floor<Millis>(one.at)));
      write_text_or_null(out, "scope", one.scope);
      out.member("client", one.client);
      write_text_or_null(out, "operation_ref", one.ref);
      out.member("method", one.method);
      out.member("path", one.path);
      out.member("key_bytes", one.key_bytes);
      write_text_or_null(out, "why", one.why);
      out.end_object();
    }
  }
  out.end_array();
}

void write_shadow_route(Writer& out, const ShadowReport::Route& route, bool with_examples) {
  out.begin_object();
  out.member("route", route.name);
  out.member("enforce", route.in_shadow ? "shadow" : "on");
  out.member("mode", route.waits ? "wait" : "conflict");
  out.member("since", to_rfc3339(std::chrono::floor<Millis>(route.since)));
  write_shadow_counts(out, route.counts);
  out.name("not_observed_by");
  out.begin_object();
  for (std::size_t i = 0; i < metrics::not_observed_count; ++i) {
    out.member(name_of(static_cast<NotObserved>(i)), route.not_observed[i]);
  }
  out.end_object();
  out.member("not_settled", route.not_settled);
  write_tenants(out, route);
  if (with_examples) write_examples(out, route);
  out.end_object();
}

}  // namespace

std::string shadow_page(const ShadowReport& report, bool with_examples) {
  Writer out;
  out.begin_object();
  out.member("since", to_rfc3339(std::chrono::floor<Millis>(report.since)));
  out.member("under_way", report.under_way);
  out.name("routes");
  out.begin_array();
  for (const auto& route : report.routes) write_shadow_route(out, route, with_examples);
  out.end_array();
  out.end_object();
  return out.take() + "\n";
}

WireAnswer shadow_answer(const AdminParts& parts, const http::RequestHead& head, Role role) {
  if (!parts.observing_now) {
    return to_answer(
        {.code = ProblemCode::not_found,
         .detail = "A worker serves no requests, so it observes none: ask a gateway."});
  }
  static constexpr std::array<std::string_view, 1> known{"route"};
  const auto target = head.origin_form;
  const auto mark = target.find('?');
  std::optional<std::string> route;
  if (mark != target.npos) {
    const auto query = parse_query(target.substr(mark + 1), known);
    if (!query) return invalid(query.error());
    for (const auto& [name, value] : *query) {
      if (route) return invalid("route is given twice.");
      route = value;
    }
  }
  ShadowReport report = parts.registry.shadow().report(route);
  if (route && report.routes.empty()) {
    return to_answer({.code = ProblemCode::not_found,
                      .detail = "No route of this name is in shadow, or was since the start."});
  }
  report.under_way = parts.observing_now();
  return json_answer(shadow_page(report, role >= Role::support));
}

}  // namespace idem::admin
