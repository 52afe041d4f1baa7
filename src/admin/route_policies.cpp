#include "admin/route_policies.hpp"

#include "admin/json_members.hpp"
#include "admin/replies.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/exchange/problem.hpp"
#include "json/writer.hpp"

namespace idem::admin {
namespace {

using json::Writer;

void write_settings(Writer& out, const std::vector<EffectiveSetting>& settings) {
  out.name("settings");
  out.begin_array();
  for (const EffectiveSetting& one : settings) {
    out.begin_object();
    out.member("name", one.name);
    write_text_or_null(out, "value", one.value);
    out.member("origin", one.origin);
    write_text_or_null(out, "place", one.place);
    out.member("help", one.help);
    out.end_object();
  }
  out.end_array();
}

void write_meanings(Writer& out, std::string_view name,
                    const std::vector<StatusMeaning>& meanings) {
  out.name(name);
  out.begin_array();
  for (const StatusMeaning& one : meanings) {
    out.begin_object();
    out.member("first", one.first);
    out.member("last", one.last);
    out.member("outcome", one.outcome);
    out.member("origin", one.origin);
    out.end_object();
  }
  out.end_array();
}

void write_route(Writer& out, const RoutePolicy& route) {
  out.begin_object();
  out.member("route", route.label);
  out.name("methods");
  out.begin_array();
  for (const std::string& method : route.methods) out.text(method);
  out.end_array();
  out.member("path", route.path);
  out.member("enforce", route.in_shadow ? "shadow" : "on");
  write_settings(out, route.settings);
  write_meanings(out, "answers", route.answers);
  write_meanings(out, "answers_with_retry_after", route.answers_with_retry_after);
  out.end_object();
}

void write_quotas(Writer& out, const std::vector<EffectiveSetting>& settings,
                  const metrics::QuotaRefusals::Report& refusals) {
  out.name("quotas");
  out.begin_object();
  write_settings(out, settings);
  out.member("since", to_rfc3339(std::chrono::floor<Millis>(refusals.since)));
  out.name("tenants");
  out.begin_array();
  for (const auto& tenant : refusals.tenants) {
    out.begin_object();
    write_text_or_null(out, "scope", tenant.scope.value_or(""));
    out.member("refused", tenant.refused);
    out.member("last_at", to_rfc3339(std::chrono::floor<Millis>(tenant.last)));
    out.end_object();
  }
  out.end_array();
  out.end_object();
}

}  // namespace

std::string routes_page(const RoutePolicies& policies,
                        const metrics::QuotaRefusals::Report& refusals) {
  Writer out;
  out.begin_object();
  out.name("routes");
  out.begin_array();
  for (const RoutePolicy& route : policies.routes) write_route(out, route);
  out.end_array();
  write_quotas(out, policies.quotas, refusals);
  out.end_object();
  return out.take() + "\n";
}

WireAnswer routes_answer(const AdminParts& parts, const http::RequestHead& head) {
  if (!parts.route_policies) {
    return to_answer({.code = ProblemCode::not_found,
                      .detail = "A worker serves no requests, so its routes have no policy: ask a "
                                "gateway."});
  }
  if (head.origin_form.contains('?')) return invalid("This path has no parameters.");
  const auto policies = parts.route_policies();
  return json_answer(routes_page(*policies, parts.registry.quota_refusals().report()));
}

}  // namespace idem::admin
