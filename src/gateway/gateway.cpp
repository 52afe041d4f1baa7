#include "gateway/gateway.hpp"

#include "core/exchange/answers.hpp"
#include "core/record/store_clock.hpp"
#include "gateway/auth/authority.hpp"
#include "gateway/auth/share_name.hpp"
#include "gateway/background/events.hpp"
#include "gateway/background/operations.hpp"
#include "gateway/keyed/judged_key.hpp"
#include "gateway/keyed/keyed.hpp"
#include "gateway/passthrough/passthrough.hpp"
#include "gateway/passthrough/upgrade.hpp"
#include "gateway/policy_document.hpp"
#include "gateway/scope_shares.hpp"
#include "gateway/shadow/shadow_request.hpp"
#include "gateway/way_in.hpp"

#include <optional>

namespace idem::gateway {
namespace {

/// `type` of a problem is the address of a page that explains it.
WireAnswer our_page(const http::RequestHead& head, const GatewaySettings& settings) {
  static constexpr std::string_view pages = "/.idem/problems/";
  const auto path = http::path_of(head.origin_form);
  const bool readable = head.method == "GET" || head.method == "HEAD";
  if (readable && path == "/.well-known/idempotency") return policy_document(settings);
  const auto kind = path.starts_with(pages) ? find_kind(path.substr(pages.size())) : nullptr;
  if (!readable || kind == nullptr) {
    return to_answer(
        {.code = ProblemCode::not_found,
         .detail = "Paths under /.idem are the gateway's own; this one is not served."});
  }
  WireAnswer page{200, {}, {}};
  page.headers.push_back({"Content-Type", "text/plain; charset=utf-8"});
  page.body = explain(*kind);
  return page;
}

/// A place among the requests of one loop, for as long as this lives.
class RequestPlace {
 public:
  /// Of a keyed request. Where `scope` is empty, it is not counted.
  RequestPlace(ScopeShares& shares, std::string_view scope) : shares_(shares) { take(scope); }
  /// Of another one, whose caller nobody has checked.
  RequestPlace(ScopeShares& shares, const http::ServerStream& client, const ScopeSource& source)
      : shares_(shares), is_of_plenty_(shares.take_of_plenty()) {
    if (!is_of_plenty_) take(ShareName(client, source).text());
  }
  ~RequestPlace() {
    if (is_of_plenty_) shares_.give_back_of_plenty();
    if (held_ != nullptr) shares_.let_go(held_);
  }
  RequestPlace(const RequestPlace&) = delete;
  RequestPlace& operator=(const RequestPlace&) = delete;
  bool has() const noexcept { return has_; }

 private:
  void take(std::string_view scope) {
    if (!scope.empty()) held_ = shares_.hold(scope);
    has_ = scope.empty() || held_ != nullptr;
  }

  ScopeShares& shares_;
  ScopeShares::Held held_ = nullptr;
  const bool is_of_plenty_ = false;
  bool has_ = true;
};

/// Tells the connection whose it is, where it will close because its client still sends. While the
/// request's head exists.
class LingersAs {
 public:
  LingersAs(http::ServerStream& client, const ScopeSource& scope) noexcept
      : client_(client), scope_(scope) {}
  ~LingersAs() {
    if (client_.body_finished()) return;
    const ShareName name(client_, scope_);
    if (name.is_scope()) client_.linger_as(name.text());
  }
  LingersAs(const LingersAs&) = delete;
  LingersAs& operator=(const LingersAs&) = delete;

 private:
  http::ServerStream& client_;
  const ScopeSource& scope_;
};

/// Counts the answer to one request when that is over.
class AnswerCount {
 public:
  AnswerCount(metrics::Shard& shard, const http::ServerStream& client) noexcept
      : shard_(shard), client_(client) {}
  ~AnswerCount() {
    shard_.answers[route_][metrics::place_of_status(client_.answered_status())].add();
  }
  AnswerCount(const AnswerCount&) = delete;
  AnswerCount& operator=(const AnswerCount&) = delete;
  void of(const Route& route) noexcept { route_ = route.counted_at; }

 private:
  metrics::Shard& shard_;
  const http::ServerStream& client_;
  std::size_t route_ = 0;
};

/// The answer to a request that ended before its exchange began.
class EndsTrace {
 public:
  EndsTrace(Observation& seen, const http::ServerStream& client) noexcept
      : seen_(seen), client_(client) {}
  ~EndsTrace() { seen_.refused(client_.answered_status()); }
  EndsTrace(const EndsTrace&) = delete;
  EndsTrace& operator=(const EndsTrace&) = delete;

 private:
  Observation& seen_;
  const http::ServerStream& client_;
};

class GatewayService final : public Gateway {
 public:
  GatewayService(Loop& loop, GatewayShared& shared, SharedSettings settings)
      : loop_(loop),
        shared_(shared),
        observer_(shared.observing),
        settings_(std::move(settings)),
        pool_(loop, settings_->upstream,
              {settings_->connect_timeout, settings_->upstream_keep_alive_idle,
               settings_->upstream_tls}),
        scopes_(shared_.store.identity().scope_secret),
        requests_(shared_.connections_per_loop) {
    make_authorizer();
    unrouted_ = unrouted_form(settings_->routes);
  }

  ErrorForm error_form() const override { return unrouted_; }

  void use(SharedSettings settings) override {
    settings_ = std::move(settings);
    request_name_.settings_changed();
    replays_.clear();
    make_authorizer();
    unrouted_ = unrouted_form(settings_->routes);
  }

  // The order of protocol.md §6: scope and authorize, key syntax, body, fingerprint; then the
  // exchange.
  Task<void> serve(http::ServerStream& client) override {
    AnswerCount answer(observer_.shard(), client);
    const auto& head = client.head();
    client.errors_as(unrouted_);
    switch (own_path(head)) {
      case OwnPath::event:
        client.errors_as(ErrorForm::problem);  // For providers, not clients.
        co_await serve_event(client, shared_, observer_, settings_);
        co_return;
      case OwnPath::operation:
        co_await serve_look_up(client);
        co_return;
      case OwnPath::page: {
        const WireAnswer page = our_page(head, *settings_);
        co_await client.answer(page);
        co_return;
      }
      case OwnPath::none:
        break;
    }
    const SharedSettings settings = settings_;  // Kept for this request, whatever a reload does.
    drop_untrusted_scope(client, settings->scope);
    const LingersAs lingers(client, settings->scope);
    const WayIn way = way_in(head, *settings);
    if (way.kind == WayIn::Kind::loops) {
      const Problem problem = loop_problem();
      co_await refuse(client, problem);
      co_return;
    }
    const Route& route = *way.route;
    client.errors_as(error_form_of(route.answers.preset));
    answer.of(route);
    if (way.kind == WayIn::Kind::refused) {
      co_await client.refuse(way.refusal);
      co_return;
    }
    if (way.kind == WayIn::Kind::keyed) {
      co_await serve_with_key(client, settings, route);
    } else {
      co_await pass(client, settings, route, way.kind == WayIn::Kind::shadow);
    }
  }

 private:
  // Nobody is asked who the caller is: the upstream does that. But a slow request occupies a
  // connection, whichever side is slow.
  Task<void> pass(http::ServerStream& client, const SharedSettings& settings, const Route& route,
                  bool is_shadow) {
    const RequestPlace place(requests_, client, settings->scope);
    if (!place.has()) {
      co_await refuse_busy(client, "Nothing was run. Send it again.");
    } else if (is_shadow) {
      const ShadowRequest::Around around{loop_, shared_, scopes_};
      co_await pass_in_shadow(client, pool_, settings, route, observer_, around);
    } else {
      co_await pass_through(client, pool_, *settings, route, observer_);
    }
  }

  Task<void> serve_look_up(http::ServerStream& client) {
    const SharedSettings settings = settings_;
    drop_untrusted_scope(client, settings->scope);
    const RequestPlace place(requests_, client, settings->scope);
    if (!place.has()) {
      co_await refuse_busy(client, "Ask again later.");
      co_return;
    }
    Authority authority(scopes_, authorizer_, client, settings_);
    co_await serve_operation(client, shared_, authority, *settings);
  }

  // The connection goes, too: kept open it would occupy the place of another caller's.
  static Task<void> refuse_busy(http::ServerStream& client, std::string_view advice) {
    client.close_after();
    const Problem problem{
        .code = ProblemCode::overloaded,
        .detail = "This caller has too many requests under way. " + std::string(advice),
        .retry_after = Millis(1000)};
    co_await refuse(client, problem);
  }

  Task<void> serve_with_key(http::ServerStream& client, const SharedSettings& shared_settings,
                            const Route& route) {
    const GatewaySettings& settings = *shared_settings;
    Observation seen(observer_);
    const auto& head = client.head();
    seen.trace(head, route, Observation::Origin::client);
    seen.from(client, settings.scope);
    const EndsTrace ends(seen, client);
    if (!offered_protocols(head).empty()) {
      co_await client.refuse(keyed_upgrade_refusal);
      co_return;
    }
    Authority authority(scopes_, authorizer_, client, settings_);
    auto refusal = co_await authority.check();
    if (refusal) {
      co_await client.answer(*refusal);
      co_return;
    }
    const bool all_one = settings.scope.kind == ScopeSource::Kind::fixed;
    const RequestPlace place(requests_, all_one ? std::string_view() : authority.scope());
    if (!place.has()) {
      co_await refuse_busy(client, "Ask again with the same key.");
      co_return;
    }
    refusal = co_await authority.check_again();  // The first check may have taken long.
    if (refusal) {
      co_await client.answer(*refusal);
      co_return;
    }
    // The replay memory is that of the current settings: a request from before a reload asks the
    // store.
    std::optional<ReplayCache::Name> replay_name;
    if (&settings == settings_.get()) {
      replay_name = request_name_.of(client, settings, route, authority.scope());
    }
    const auto* kept = replay_name ? replays_.find(*replay_name, uptime()) : nullptr;
    if (kept != nullptr) {
      const auto answer = kept->answer;  // A slow reader may outlive the cache's entry.
      seen.replayed(authority.scope());
      seen.ran_in(answer->ran_in);
      seen.finished({kept->id}, route, answer->status);
      co_await client.answer(*answer);
      co_return;
    }
    co_await admit_and_serve(client, shared_settings, route, seen, authority, replay_name);
  }

  Task<void> admit_and_serve(http::ServerStream& client, const SharedSettings& shared_settings,
                             const Route& route, Observation& seen, Authority& authority,
                             std::optional<ReplayCache::Name> replay_name) {
    const GatewaySettings& settings = *shared_settings;
    const auto& head = client.head();
    JudgedKey judged = judge_key(head, settings, route, wall_time());
    auto& key = judged.key;
    auto& new_key_rejection = judged.new_key_rejection;
    if (judged.is_refused) {
      co_await refuse(client, *new_key_rejection);
      co_return;
    }
    if (new_key_rejection) {
      const bool has_record =
          co_await accept_existing_key(client, settings, route, authority, *new_key_rejection, key);
      if (!has_record) co_return;
    }
    seen.key(*key);
    if (shared_.unsettled.load() >= limits::unsettled_attempts_max) {
      const WireAnswer full = store_unavailable_answer(Millis(1000));
      co_await client.answer(full);
      co_return;
    }
    auto body = co_await client.read_body(route.request_body_bytes_max, shared_.spill);
    if (!body) {
      co_await client.refuse(body.error());
      co_return;
    }
    auto refusal = co_await authority.check_again();
    if (refusal) {
      co_await client.answer(*refusal);
      co_return;
    }
    // The body may have taken long: a record that was found may have gone meanwhile, and a key that
    // was young enough may have become too old.
    if (!new_key_rejection)
      new_key_rejection = refused_by_age(head, settings, route, *key, wall_time());
    KeyedRequest request{authority.scope(),
                         route.operation(head.method, http::path_of(head.origin_form)),
                         std::move(*key),
                         std::move(*body),
                         std::move(seen),
                         &authority,
                         replay_name,
                         &replays_,
                         std::move(new_key_rejection)};
    request.settings = shared_settings;
    co_await serve_keyed(client, pool_, shared_, settings, route, request);
  }

  // Anew at each reload, so that no kept permission outlives one.
  void make_authorizer() {
    const auto& secret = shared_.store.identity().secret;
    authorizer_ = settings_->authorize
                      ? std::make_shared<Authorizer>(loop_, *settings_, secret, observer_)
                      : nullptr;
  }

  /// Whether a key that may begin no new record has one; `key` is then that key. False: it has
  /// none, or the store failed, and the client was answered.
  Task<bool> accept_existing_key(http::ServerStream& client, const GatewaySettings& settings,
                                 const Route& route, const Authority& authority,
                                 const Problem& new_key_rejection,
                                 std::expected<std::string, KeyError>& key) {
    auto existing = co_await existing_key(loop_, shared_.store, client.head(), settings, route,
                                          authority.scope());
    if (existing && *existing) {
      key = std::move(**existing);
      co_return true;
    }
    const WireAnswer answer = existing ? to_answer(new_key_rejection)
                                       : store_error_answer(existing.error(), Millis(1000));
    co_await client.answer(answer);
    co_return false;
  }

  static Task<void> refuse(http::ServerStream& client, const Problem& problem) {
    const WireAnswer answer = to_answer(problem);
    co_await client.answer(answer);
  }

  Loop& loop_;
  GatewayShared& shared_;
  Observer observer_;
  SharedSettings settings_;
  http::UpstreamPool pool_;
  ErrorForm unrouted_ = ErrorForm::problem;
  ScopeReader scopes_;
  RequestName request_name_;
  ScopeShares requests_;  ///< Those that are being served, with a key or without.
  ReplayCache replays_{limits::replay_cache_bytes};
  std::shared_ptr<Authorizer> authorizer_;  ///< Held by the requests that ask it.
};

}  // namespace

std::unique_ptr<Gateway> make_gateway(Loop& loop, GatewayShared& shared, SharedSettings settings) {
  return std::make_unique<GatewayService>(loop, shared, std::move(settings));
}

}  // namespace idem::gateway
