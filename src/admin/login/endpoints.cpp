#include "admin/login/endpoints.hpp"

#include <algorithm>
#include <array>

namespace idem::admin {
namespace {

using enum Role;

constexpr std::array all{
    Endpoint{"GET", "/livez", viewer, true},
    Endpoint{"HEAD", "/livez", viewer, true},
    Endpoint{"GET", "/readyz", viewer, true},
    Endpoint{"HEAD", "/readyz", viewer, true},
    Endpoint{"GET", "/metrics", viewer, true},
    Endpoint{"HEAD", "/metrics", viewer, true},
    Endpoint{"GET", "/v1/session", viewer},
    Endpoint{"POST", "/v1/session", viewer, false, {}, true},
    Endpoint{"POST", "/v1/session/end", viewer},
    Endpoint{"POST", "/v1/session/codes", viewer},
    Endpoint{"GET", "/v1/status", viewer},
    Endpoint{"GET", "/v1/samples", viewer},
    Endpoint{"GET", "/v1/retries", support},
    Endpoint{"GET", "/v1/keys", viewer},
    Endpoint{"POST", "/v1/keys/refs", support},
    Endpoint{"GET", "/v1/keys/{ref}", viewer},
    Endpoint{"POST", "/v1/keys/{ref}/resolve", operates, false, "keys.resolve"},
    Endpoint{"POST", "/v1/keys/{ref}/release", operates, false, "keys.release"},
    Endpoint{"POST", "/v1/explain", support},
    Endpoint{"GET", "/v1/approvals", support},
    Endpoint{"GET", "/v1/approvals/{id}", support},
    Endpoint{"POST", "/v1/approvals/{id}/approve", operates, false, "approvals.approve"},
    Endpoint{"POST", "/v1/approvals/{id}/reject", operates, false, "approvals.reject"},
    Endpoint{"GET", "/v1/audit", support},
    Endpoint{"GET", "/v1/audit/lines", support},
    Endpoint{"GET", "/v1/audit/verify", support},
    Endpoint{"GET", "/v1/shadow", viewer},
    Endpoint{"GET", "/v1/routes", viewer},
    Endpoint{"GET", "/v1/outbox", viewer},
    Endpoint{"GET", "/v1/outbox/{id}", viewer},
    Endpoint{"POST", "/v1/outbox/{id}/retry", operates, false, "outbox.retry"},
    Endpoint{"GET", "/v1/dlq", viewer},
    Endpoint{"POST", "/v1/dlq/redrive", operates, false, "dlq.redrive"},
    Endpoint{"POST", "/v1/dlq/discard", operates, false, "dlq.discard"},
    Endpoint{"GET", "/v1/dlq/{id}", viewer},
    Endpoint{"POST", "/v1/store/rekey", operates, false, "store.rekey"},
    Endpoint{"POST", "/v1/store/shred", operates, false, "store.shred"},
    Endpoint{"GET", "/v1/jobs", viewer},
    Endpoint{"POST", "/v1/jobs", operates, false, "jobs.begin"},
    Endpoint{"POST", "/v1/jobs/preview", support},
    Endpoint{"GET", "/v1/jobs/{id}", viewer},
    Endpoint{"GET", "/v1/jobs/{id}/results", viewer},
    Endpoint{"POST", "/v1/jobs/{id}/cancel", operates, false, "jobs.cancel"},
    Endpoint{"GET", "/v1/settings/changes", support},
    Endpoint{"POST", "/v1/settings/reload", operates, false, "settings.reload"},
    Endpoint{"GET", "/v1/tokens", operates},
    Endpoint{"POST", "/v1/tokens", operates, false, "tokens.make"},
    Endpoint{"POST", "/v1/tokens/{name}/revoke", operates, false, "tokens.revoke"},
};

bool matches(std::string_view pattern, std::string_view path) {
  while (!pattern.empty()) {
    // Both begin with a slash.
    if (path.empty()) return false;
    const auto wanted = pattern.substr(0, pattern.find('/', 1));
    const auto given = path.substr(0, path.find('/', 1));
    const bool is_any = wanted.starts_with("/{");
    if (is_any ? given.size() < 2 : given != wanted) return false;
    pattern.remove_prefix(wanted.size());
    path.remove_prefix(given.size());
  }
  return path.empty();
}

}  // namespace

std::span<const Endpoint> endpoints() noexcept { return all; }

std::optional<FoundEndpoint> find_endpoint(std::string_view method, std::string_view path) {
  const auto* const first =
      std::ranges::find_if(all, [&](const Endpoint& one) { return matches(one.path, path); });
  if (first == all.end()) return std::nullopt;
  FoundEndpoint found;
  for (const auto* one = first; one != all.end() && one->path == first->path; ++one) {
    if (one->method == method) found.endpoint = one;
    found.methods += (found.methods.empty() ? "" : ", ") + std::string(one->method);
  }
  return found;
}

}  // namespace idem::admin
