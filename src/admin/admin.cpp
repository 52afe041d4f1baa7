#include "admin/admin.hpp"

#include "admin/approvals_api.hpp"
#include "admin/audit_api.hpp"
#include "admin/console/console.hpp"
#include "admin/explain.hpp"
#include "admin/host.hpp"
#include "admin/jobs_api.hpp"
#include "admin/keys.hpp"
#include "admin/login/endpoints.hpp"
#include "admin/outbox.hpp"
#include "admin/query.hpp"
#include "admin/rekey.hpp"
#include "admin/replies.hpp"
#include "admin/retries_api.hpp"
#include "admin/route_policies.hpp"
#include "admin/samples_api.hpp"
#include "admin/session_api.hpp"
#include "admin/settings_api.hpp"
#include "admin/shadow.hpp"
#include "admin/shred.hpp"
#include "admin/status.hpp"
#include "admin/tokens_api.hpp"

#include "core/bytes/json_string.hpp"
#include "core/exchange/problem.hpp"
#include "loop/store_link.hpp"

#include <array>
#include <charconv>

namespace idem::admin {
namespace {

WireAnswer text_answer(std::string_view media_type, std::string body) {
  WireAnswer answer{200, {}, std::move(body)};
  answer.headers.push_back({"Content-Type", std::string(media_type)});
  answer.headers.push_back({"Cache-Control", "no-store"});
  return answer;
}

WireAnswer status_answer(std::string_view text) {
  return text_answer("application/json", "{\"status\":" + json_string(text) + "}\n");
}

/// What is behind the question mark.
std::string_view query_of(const http::RequestHead& head, std::string_view path) {
  const std::string_view target = head.origin_form;
  return target.substr(std::min(path.size() + 1, target.size()));
}

/// How old the counts of a status may be.
std::expected<std::chrono::seconds, std::string> max_age_of(std::string_view query) {
  static constexpr std::array<std::string_view, 1> known{"max_age"};
  auto pairs = parse_query(query, known);
  if (!pairs) return std::unexpected(std::move(pairs.error()));
  if (pairs->empty()) return std::chrono::seconds(0);
  const std::string& text = pairs->front().second;
  int seconds = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (pairs->size() > 1 || error != std::errc() || end != text.data() + text.size() ||
      seconds < 0 || seconds > 60) {
    return std::unexpected("max_age is a number of seconds from 0 to 60.");
  }
  return std::chrono::seconds(seconds);
}

class Admin final : public http::Service {
 public:
  explicit Admin(AdminParts parts)
      : parts_(std::move(parts)),
        approvals_(parts_),
        shard_(parts_.registry.add_shard()),
        census_(parts_.loop, parts_.store),
        keys_(parts_, shard_, approvals_, census_),
        outbox_(parts_, offload_, approvals_),
        tokens_(parts_, offload_),
        settings_(parts_, offload_),
        session_(parts_),
        audit_(parts_),
        jobs_(parts_, shard_, offload_, approvals_),
        samples_(parts_, [this] { return outbox_.count(); }) {
    approvals_.decide_by([this](const ApprovalRequest& request, const OrderBody& order) {
      return decide(request, order);
    });
    jobs_.start();
    samples_.start();
  }

  Task<void> serve(http::ServerStream& client) override {
    const auto& head = client.head();
    if (!is_our_host(head.host, parts_.hosts)) {
      const WireAnswer foreign =
          to_answer({.code = ProblemCode::bad_request,
                     .detail = "The Host is neither loopback nor one of --admin-host."});
      co_await client.answer(foreign);
      co_return;
    }
    // Anybody may link to the console: its files have nothing of the store.
    if (const auto file = console_answer(head.method, head.origin_form)) {
      co_await client.answer(*file);
      co_return;
    }
    if (is_from_elsewhere(head)) {
      const WireAnswer foreign =
          to_answer({.code = ProblemCode::bad_request,
                     .detail = "The request comes from a page of another origin. (A proxy in front "
                               "must pass the Host on that the browser sent.)",
                     .status = 403});
      co_await client.answer(foreign);
      co_return;
    }
    const WireAnswer answer = co_await answer_to(client);
    co_await client.answer(answer);
  }

 private:
  // Nothing is read of the store before the caller has its role.
  Task<WireAnswer> answer_to(http::ServerStream& client) {
    const auto& head = client.head();
    const std::string_view target = head.origin_form;
    const std::string path(target.substr(0, target.find('?')));
    const auto found = find_endpoint(head.method, path);
    const bool is_probe = found && found->endpoint != nullptr && found->endpoint->is_probe;
    if (found && found->endpoint != nullptr && found->endpoint->is_open) {
      auto beginning = session_.begin(client);
      auto answer = co_await beginning;
      co_return answer;
    }
    Caller caller;
    if (!is_probe || !parts_.login.may_probe(client)) {
      auto looking = parts_.login.look(parts_.loop);
      co_await looking;
      auto logged_in = parts_.login.caller_of(client);
      if (!logged_in) co_return std::move(logged_in.error());
      caller = std::move(*logged_in);
    }
    if (!found) co_return to_answer({.code = ProblemCode::not_found});
    if (found->endpoint == nullptr) co_return not_allowed(found->methods);
    const Role least = found->endpoint->least;
    if (caller.role < least) co_return parts_.login.lacks_role(client, caller, least);
    auto serving = serve_endpoint(client, path, caller);
    auto answer = co_await serving;
    co_return answer;
  }

  Task<WireAnswer> serve_endpoint(http::ServerStream& client, std::string_view path,
                                  const Caller& caller) {
    if (path == "/livez") {
      const auto stalled = standstill(loop_stalled_live, false);
      co_return stalled ? *stalled : status_answer("alive");
    }
    if (path == "/readyz") {
      auto answer = co_await readiness();
      co_return answer;
    }
    if (path == "/metrics") {
      auto answer = co_await exposition(client.head());
      co_return answer;
    }
    if (path == "/v1/status") {
      auto answer = co_await status_of(query_of(client.head(), path));
      co_return answer;
    }
    if (path.starts_with("/v1/keys")) {
      auto answer = co_await keys_.answer_to(client, caller);
      co_return answer;
    }
    if (path.starts_with("/v1/tokens")) {
      auto answer = co_await tokens_.answer_to(client, caller);
      co_return answer;
    }
    if (path.starts_with("/v1/session")) {
      auto answer = co_await session_.answer_to(client, caller);
      co_return answer;
    }
    if (path.starts_with("/v1/settings")) {
      auto answer = co_await settings_.answer_to(client, caller);
      co_return answer;
    }
    if (path.starts_with("/v1/jobs")) {
      auto answer = co_await jobs_.answer_to(client, caller);
      co_return answer;
    }
    if (path.starts_with("/v1/approvals")) {
      auto answer = co_await approvals_.answer_to(client, caller);
      co_return answer;
    }
    if (path.starts_with("/v1/audit")) {
      auto answer = co_await audit_.answer_to(client);
      co_return answer;
    }
    if (path == "/v1/retries") {
      co_return retries_answer(parts_.registry.retries(), query_of(client.head(), path));
    }
    if (path == "/v1/samples") {
      co_return samples_.answer_to(query_of(client.head(), path));
    }
    if (path == "/v1/shadow") co_return shadow_answer(parts_, client.head(), caller.role);
    if (path == "/v1/routes") co_return routes_answer(parts_, client.head());
    if (path == "/v1/store/rekey") {
      auto answer = co_await rekey(parts_, client, caller, rekey_run_);
      co_return answer;
    }
    if (path == "/v1/store/shred") {
      auto answer = co_await shred(parts_, client, caller);
      co_return answer;
    }
    if (path == "/v1/explain") {
      auto answer = co_await explain_to(parts_, client);
      co_return answer;
    }
    auto answer = co_await outbox_.answer_to(client, caller);
    co_return answer;
  }

  /// An order that has its approvals.
  Task<WireAnswer> decide(const ApprovalRequest& request, const OrderBody& order) {
    switch (request.kind) {
      case ApprovalKind::resolve:
      case ApprovalKind::release:
        return keys_.decide(request, order);
      case ApprovalKind::jobs:
        return jobs_.decide(request, order);
      case ApprovalKind::discard:
        break;
    }
    return outbox_.decide(request, order);
  }

  std::optional<WireAnswer> standstill(Millis least, bool only_of_clients) const {
    if (parts_.loops == nullptr) return std::nullopt;
    const auto found = parts_.loops->longest(least, only_of_clients);
    if (!found) return std::nullopt;
    return to_answer({.code = ProblemCode::loop_stalled,
                      .detail = found->name + " has not completed a turn for " +
                                std::to_string(found->lasting.count() / 1'000) +
                                " s. Requests on it wait, and get no answer."});
  }

  Task<WireAnswer> readiness() {
    if (auto stalled = standstill(loop_stalled_ready, true)) co_return std::move(*stalled);
    if (parts_.draining.load()) {
      co_return to_answer({.code = ProblemCode::draining, .detail = "The gateway is stopping."});
    }
    StoreCall find = Find{};
    auto asking = ask_store(parts_.loop, parts_.store, find);
    const auto probe = co_await asking;
    if (!probe) {
      co_return to_answer({.code = ProblemCode::store_unavailable, .detail = probe.error().detail});
    }
    co_return status_answer("ready");
  }

  Task<WireAnswer> status_of(std::string_view query) {
    const auto max_age = max_age_of(query);
    if (!max_age) co_return invalid(max_age.error());
    Status status;
    auto asking = census_.fresh();
    auto counted = co_await asking;
    if (counted) {
      status.census = *counted;
      auto reading = read_unsettled(*max_age, status);
      co_await reading;
      auto reading_restore = read_restore(parts_, status);
      co_await reading_restore;
    } else {
      status.store_error = std::move(counted.error().detail);
    }
    status.gauges = parts_.gauges();
    if (status.census) {
      auto counting_messages = outbox_.count();
      status.gauges.messages = co_await counting_messages;
    }
    if (status.census) samples_.counted(*status.census, status.gauges.messages);
    status.draining = parts_.draining.load();
    co_return json_answer(status_page(status, parts_.registry, MonotonicClock::now()));
  }

  /// Thousands of records are read for this, so that several open pages share what one has read;
  /// of a store that takes long for it, for ten times as long.
  Task<void> read_unsettled(std::chrono::seconds max_age, Status& into) {
    const auto now = MonotonicClock::now();
    const Millis age_max = std::max<Millis>(max_age, SharedCensus::rest_after(unsettled_took_));
    if (unsettled_ && now - unsettled_at_ <= age_max) {
      into.records = unsettled_;
      co_return;
    }
    auto reading = count_unsettled(parts_, into);
    co_await reading;
    unsettled_ = into.records;
    unsettled_at_ = now;
    unsettled_took_ = MonotonicClock::now() - now;
  }

  // Without the census, and nothing else is asked of a store that does not answer: operators need
  // the other numbers most while the store does not answer.
  Task<WireAnswer> exposition(const http::RequestHead& head) {
    std::string accepted;
    for (const auto& field : head.fields) {
      if (http::same_name(field.name, "Accept")) accepted.append(field.value).append(",");
    }
    const metrics::Format format = metrics::preferred_format(accepted);
    StoreCall count = Count{};
    auto counting = ask_store(parts_.loop, parts_.store, count);
    auto counted = co_await counting;
    metrics::Gauges gauges = parts_.gauges();
    if (parts_.loops != nullptr) gauges.loop_stalled = parts_.loops->longest();
    if (counted) {
      gauges.census = std::get<Census>(*counted);
    } else if (!parts_.watches_store && !counted.error().is_final()) {
      gauges.store_answers = false;
    }
    if (counted) {
      auto counting_messages = outbox_.count();
      gauges.messages = co_await counting_messages;
    }
    co_return text_answer(metrics::content_type_of(format),
                          parts_.registry.exposition(gauges, format));
  }

  AdminParts parts_;
  ApprovalsApi approvals_;
  metrics::Shard& shard_;
  SharedCensus census_;
  KeysApi keys_;
  Offload offload_{"idem-admin-io"};
  OutboxApi outbox_;  ///< Holds only references: offloaded work may still use it at the end.
  TokensApi tokens_;
  SettingsApi settings_;
  SessionApi session_;
  AuditApi audit_;
  std::optional<RekeyRun> rekey_run_;
  JobsApi jobs_;
  SamplesApi samples_;
  std::optional<Status::Records> unsettled_;
  MonotonicTime unsettled_at_{};
  Millis unsettled_took_{};
};

}  // namespace

std::unique_ptr<http::Service> make_admin(AdminParts parts) {
  return std::make_unique<Admin>(std::move(parts));
}

}  // namespace idem::admin
