#include "admin/admin.hpp"
#include "admin/audit/audit_trail.hpp"
#include "admin/route_policy.hpp"
#include "cli/commands/background.hpp"
#include "cli/commands/certificates.hpp"
#include "cli/commands/core_dumps.hpp"
#include "cli/commands/farewell.hpp"
#include "cli/commands/hang_watch.hpp"
#include "cli/commands/reloads.hpp"
#include "cli/commands/series.hpp"
#include "cli/commands/signals.hpp"
#include "cli/commands/tracing.hpp"
#include "cli/process/handover.hpp"
#include "cli/process/passed_sockets.hpp"
#include "cli/process/resources.hpp"
#include "cli/process/service_manager.hpp"
#include "cli/settings/effective_routes.hpp"
#include "cli/settings/noted_settings.hpp"
#include "cli/settings/opening.hpp"
#include "cli/settings/reload.hpp"
#include "cli/settings/units.hpp"
#include "gateway/background/dispatcher.hpp"
#include "gateway/background/early_events.hpp"
#include "gateway/background/search_index.hpp"
#include "gateway/gateway.hpp"
#include "gateway/keyed/answers_under_way.hpp"
#include "gateway/keyed/explainer.hpp"
#include "gateway/keyed/lookup_limit.hpp"
#include "gateway/keyed/waiters.hpp"
#include "gateway/shadow/shadow_room.hpp"
#include "store/circuit_breaker.hpp"

#include <idem/open_store.hpp>
#include <idem/search_limits.hpp>

#include <csignal>
#include <latch>
#include <optional>
#include <thread>

namespace idem::cli {
namespace {

// Where the sockets that listen outlive the process: most clients then open a new connection,
// instead of meeting the end of theirs with a request.
constexpr auto farewell_time = std::chrono::seconds(1);

class GatewayProcess {
 public:
  GatewayProcess(const SettingsSource& source, ReadSettings read, ProcessLog& process_log)
      : source_(source),
        given_(std::move(read.given)),
        reloads_(source, given_),
        options_(std::move(read.options)),
        process_log_(process_log),
        log_(process_log.sink()) {}

  int run() {
    signals_ = block_signals();
    raise_descriptor_limit();
    std::optional<StartWatch> starting(process_log_);
    if (const auto opened = open(); !opened) return fail(opened.error());
    if (!options_.destinations.empty() && store_->transactions() == nullptr) {
      return fail({no_outbox(), usage});
    }
    auto spill = open_spill_folder(given_, options_);
    if (!spill) return fail({spill.error()});
    spill_ = std::move(*spill);
    auto waiters = std::make_shared<gateway::Waiters>(
        *store_, options_.connections / limits::waiters_connections_divisor);
    store_->watch(waiters);
    registry_ =
        std::make_unique<metrics::Registry>(options_.tenant_label, store_->identity().secret);
    tracing_.emplace(options_.traces, options_.settings.owner, log_);
    name_series(*registry_, options_, *tracing_);
    observing_ = std::make_unique<gateway::Observing>(*registry_, log_, options_.log_requests,
                                                      tracing_->tracer());
    shared_ =
        std::make_unique<gateway::GatewayShared>(*store_, *spill_, std::move(waiters), *observing_);
    shared_->lookups = std::make_shared<gateway::LookupLimit>();
    shared_->early_events = std::make_shared<gateway::EarlyEvents>();
    shared_->answers = std::make_shared<gateway::AnswersUnderWay>();
    shared_->shadow = std::make_shared<gateway::ShadowRoom>();
    shared_->digesting = &digesting_.emplace("idem-digest", loop_count());
    auto settings = std::make_shared<gateway::GatewaySettings>(options_.settings);
    count_routes(*settings);
    if (const auto adopted = adopt_routes(*store_, options_.store, *settings); !adopted)
      return fail(adopted.error());
    settings_ = std::move(settings);
    note_routes();
    auto certificates = read_certificates(options_, {});
    if (!certificates) return fail({certificates.error()});
    certificates_ = std::move(*certificates);
    build_loops();
    if (const auto built = build_admin(); !built) return fail({built.error()});
    if (const auto opened = open_listeners(); !opened) return fail({opened.error()});
    start();
    starting.reset();
    for (;;) {
      const int signal = manager_.next_signal(signals_);
      if (signal == SIGHUP) {
        ServiceManager::reloading();
        reload();
        ServiceManager::ready();
      } else if (signal != SIGUSR2) {
        return stop();
      } else if (may_hand_over()) {
        return hand_over();
      }
    }
  }

 private:
  int fail(const StartFailure& failure) { return process_log_.fail_start("gateway", failure); }

  std::expected<void, StartFailure> open() {
    auto store = open_configured_store(options_, true, log_);
    // An error about a flag needs no place.
    if (const auto& place = given_.store.place; !store && place.in_file())
      store.error().why = place.text() + ": " + store.error().why;
    if (!store) return std::unexpected(std::move(store.error()));
    const auto changed = [this](bool answers, const std::string& why) {
      store_answers_ = answers;
      if (answers) return log_(LogLevel::info, "store_available", {});
      log_(LogLevel::error, "store_unavailable", {{"reason", why}});
    };
    store_ = make_circuit_breaker(std::move(*store), {.on_change = changed, .log = log_});
    return {};
  }

  // All or nothing: on any error the gateway keeps its settings and certificate and goes on
  // serving.
  void reload() {
    auto [difference, read] = read_again(source_, given_);
    log_changes(log_, difference);
    auto certificates = read_certificates(options_, certificates_);
    if (!read) return refuse_reload(difference.refused, difference);
    if (!store_answers_) return refuse_reload("the store does not answer", difference);
    if (!certificates) return refuse_reload(certificates.error(), difference);
    keep_what_stays(read->options.settings, *settings_);
    // Last, because it cannot be undone.
    const auto adopted = adopt_routes(*store_, options_.store, read->options.settings);
    if (!adopted) return refuse_reload(adopted.error().why, difference);
    given_ = std::move(read->given);
    use(std::move(read->options.settings));
    certificates_ = std::move(*certificates);
    use_certificates();
    note_settings("config.reload");
    log_(LogLevel::info, "reloaded",
         {{"certificate", options_.tls.certificate}, {"routes", settings_->routes.all().size()}});
    reloads_.ended(std::move(difference), &given_);
  }

  void use_certificates() {
    const auto& [clients, operators] = certificates_;
    if (clients) gateway_server_->use_tls(clients);
    if (operators && admin_server_) admin_server_->use_tls(operators);
  }

  void refuse_reload(const std::string& reason, admin::SettingsDifference difference) {
    log_(LogLevel::error, "reload_failed", {{"reason", reason}});
    difference.refused = reason;
    reloads_.ended(std::move(difference), nullptr);
  }

  // Returns when all later requests use them.
  void use(gateway::GatewaySettings settings) {
    count_routes(settings);
    settings_ = std::make_shared<const gateway::GatewaySettings>(std::move(settings));
    note_routes();
    const auto applied = std::make_shared<std::latch>(static_cast<std::ptrdiff_t>(loops_.size()));
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      loops_[i]->post([applied, to = gateways_[i].get(), settings = settings_] {
        to->use(settings);
        applied->count_down();
      });
    }
    admin_loop_->post(
        [this, settings = settings_, policies = effective_routes(given_, settings_->routes)] {
          admin_settings_ = settings;
          admin_policies_ = policies;
        });
    gateway_server_->use_proxies(settings_->scope.trusted_proxies);
    dispatcher_->use(settings_);
    search_->use(settings_);
    background_->use(settings_);
    applied->wait();
  }

  void count_routes(gateway::GatewaySettings& settings) {
    settings.routes.count_by(
        [this](const std::string& label) { return registry_->routes().place_of(label); });
  }

  void note_routes() {
    std::vector<metrics::Shadow::Watched> watched;
    for (const auto& route : settings_->routes.all()) {
      // Of all settings so far: requests from before a reload keep theirs.
      longest_ = std::max<Millis>(longest_, route.upstream_timeout + limits::lease_margin);
      if (!route.in_shadow()) continue;
      watched.push_back({route.label(), route.mode == gateway::Mode::wait});
    }
    registry_->shadow().watch(watched);
  }

  unsigned loop_count() const {
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    return options_.threads > 0 ? options_.threads : cores;
  }

  void build_loops() {
    const unsigned count = loop_count();
    shared_->connections_per_loop = (options_.connections + count - 1) / count;
    for (unsigned i = 0; i < count; ++i) {
      auto& loop = *loops_.emplace_back(std::make_unique<Loop>());
      gateways_.push_back(gateway::make_gateway(loop, *shared_, settings_));
      serving_.push_back({&loop, gateways_.back().get()});
    }
    // Its own loop: stored requests must not delay requests whose clients wait.
    dispatch_loop_ = std::make_unique<Loop>();
    dispatcher_ = gateway::make_dispatcher(*dispatch_loop_, *shared_, settings_);
    shared_->dispatcher = dispatcher_.get();
    search_ = gateway::make_search_index(*dispatch_loop_, *shared_, settings_);
    shared_->search = search_.get();
    // Its own loop: the admin API answers also while the others are busy or draining.
    admin_loop_ = std::make_unique<Loop>();
    admin_settings_ = settings_;
    admin_policies_ = effective_routes(given_, settings_->routes);
    audit_ = std::make_unique<admin::AuditTrail>(*admin_loop_, *store_, log_);
    tell_of_lost_lines(process_log_, *audit_, "gateway " + options_.listen);
  }

  // Without an admin listener: nothing, so that no token lies about.
  std::expected<void, std::string> build_admin() {
    if (options_.admin.empty()) return {};
    auto login = admin::Login::open(options_.login, log_);
    if (!login) return std::unexpected(given_.admin.place.text() + ": " + login.error());
    explainer_ = std::make_unique<gateway::Explainer>(*admin_loop_, *store_);
    loop_watch_ = std::make_unique<LoopWatch>(*admin_loop_, loops_, *dispatch_loop_);
    admin_ = admin::make_admin({.loop = *admin_loop_,
                                .store = search_->indexed(),
                                .spill = *spill_,
                                .registry = *registry_,
                                .draining = draining_,
                                .log = log_,
                                .audit = *audit_,
                                .login = std::move(*login),
                                .gauges = [this] { return gauges(); },
                                .parse_duration = parse_duration,
                                .naming_parts =
                                    [this](const std::string& operation) {
                                      return admin_settings_->routes.naming_parts(operation);
                                    },
                                .hosts = options_.admin_hosts,
                                .links = options_.links,
                                .evidence_grace = options_.evidence_grace,
                                .provider_of =
                                    [this](const Record& record) {
                                      auto name = admin_settings_->routes.provider_of(record);
                                      return options_.providers.contains(name) ? name : "";
                                    },
                                .reloading = reloads_.for_admin(),
                                .route_policies = [this] { return admin_policies_; },
                                .observing_now = [this] { return shared_->shadow->under_way(); },
                                .loops = loop_watch_.get(),
                                .explain =
                                    [this](const RequestInQuestion& request) {
                                      return explainer_->explain(admin_settings_, request);
                                    }});
    return {};
  }

  metrics::Gauges gauges() const {
    const StoreHealth store = store_->health();
    return {.census = {},
            .open_connections = gateway_server_->open_connections(),
            .refused_connections = gateway_server_->refused_connections(),
            .log_lines_dropped = process_log_.lost(),
            .waiting_requests = shared_->waiters->waiting(),
            .unsettled_attempts = shared_->unsettled.load(),
            .store_answers = store.answers,
            .store_calls_refused = store.refused_at_once,
            .damaged_askings = store.damaged,
            .destinations = names_of(options_.destinations)};
  }

  std::expected<void, std::string> open_listeners() {
    http::Admission::Options admission{clients_within_limit(options_.connections, options_.store),
                                       options_.connections_per_address,
                                       settings_->scope.trusted_proxies, log_};
    const int passed = passed_.take(options_.listen, "gateway");
    sockets_stay_ = passed != http::Server::no_socket;
    auto gateway =
        http::Server::listen(options_.listen, serving_, options_.timers, admission, passed);
    if (!gateway) return std::unexpected(given_.listen.place.text() + ": " + gateway.error());
    gateway_server_ = std::move(*gateway);
    if (options_.admin.empty()) return {};
    auto admin = http::Server::listen(options_.admin, {{admin_loop_.get(), admin_.get()}},
                                      options_.timers, {}, passed_.take(options_.admin, "admin"));
    if (!admin) return std::unexpected(given_.admin.place.text() + ": " + admin.error());
    admin_server_ = std::move(*admin);
    return {};
  }

  void start() {
    use_certificates();
    gateway_server_->start();
    if (admin_server_) admin_server_->start();
    for (auto& loop : loops_) threads_.emplace_back([running = loop.get()] { running->run(); });
    threads_.emplace_back([this] { dispatch_loop_->run("idem-dispatch"); });
    threads_.emplace_back([this] { admin_loop_->run("idem-admin"); });
    tracing_->start();
    background_ = std::make_unique<Background>(
        Background::Parts{*store_, search_->indexed(), log_, *registry_, options_, settings_});
    announce("gateway", *gateway_server_);
    if (admin_server_) announce("admin", *admin_server_);
    note_settings("config.start");
    for (const std::string& address : passed_.close_rest())
      log_(LogLevel::warning, "socket_not_used", {{"address", address}});
    std::vector<Loop*> all{dispatch_loop_.get(), admin_loop_.get()};
    for (const auto& loop : loops_) all.push_back(loop.get());
    manager_.watch(std::move(all));
    ServiceManager::ready();
  }

  void note_settings(std::string what) {
    auto settings = noted_settings(given_, Purpose::gateway, options_.secrets);
    admin_loop_->post([this, what = std::move(what), settings = std::move(settings)]() mutable {
      audit_->note_settings(std::move(what), "gateway " + options_.listen, std::move(settings));
    });
  }

  void announce(std::string role, const http::Server& server) {
    log_(LogLevel::info, "listening", {{"address", server.address()}, {"role", std::move(role)}});
  }

  // What the next program refuses must not cost this one.
  bool may_hand_over() {
    std::expected<void, std::string> accepted = std::unexpected("the store does not answer");
    if (store_answers_) accepted = handover_.check();
    if (!accepted) log_(LogLevel::error, "handover_refused", {{"reason", accepted.error()}});
    return accepted.has_value();
  }

  int hand_over() {
    ServiceManager::reloading();
    log_(LogLevel::info, "handing_over", {});
    sockets_stay_ = true;
    handover_.keep(gateway_server_->socket(), "gateway");
    if (admin_server_) handover_.keep(admin_server_->socket(), "admin");
    const bool is_drained = drain();
    // Nobody takes over from a process that was to stop, or whose threads still use descriptors.
    if (ends_asked_ > 0 || !is_drained) return end(is_drained);
    close();
    process_log_.flush(limits::log_flush_max);
    log_(LogLevel::error, "handover_failed", {{"reason", handover_.exec()}});
    return failed;
  }

  int stop() {
    ServiceManager::stopping();
    ends_asked_ = 1;
    return end(drain());
  }

  int end(bool is_drained) {
    if (!is_drained) {
      finish_log(process_log_, *audit_);
      std::_Exit(failed);
    }
    close();
    return done;
  }

  // Finishes and settles running requests, closes idle connections. False: the time is over.
  // Requests that are cut off then are marked as dispatched, and become unknown at the end of their
  // lease.
  bool drain() {
    if (sockets_stay_) say_goodbye();
    draining_.store(true);
    gateway_server_->drain();
    dispatcher_->drain();
    log_(LogLevel::info, "draining", {});
    if (wait_until_idle()) return true;
    log_(LogLevel::warning, "drain_timed_out", {});
    return false;
  }

  void say_goodbye() {
    gateway_server_->leave();
    const auto until = MonotonicClock::now() + farewell_time;
    while (MonotonicClock::now() < until && gateway_server_->open_connections() > 0 && pause()) {
    }
  }

  // False: a second signal requests to stop at once.
  bool pause() {
    const timespec length{0, 5'000'000};
    const int signal = sigtimedwait(&signals_, nullptr, &length);
    if (signal == SIGTERM || signal == SIGINT) ++ends_asked_;
    manager_.look();
    return ends_asked_ < 2;
  }

  void close() {
    const EndWatch ending(process_log_, [this] { return store_answers_.load(); });
    wait_for_the_rest(*shared_->shadow, *search_);
    background_.reset();
    finish_log(process_log_, *audit_);
    for (auto& loop : loops_) loop->stop();
    dispatch_loop_->stop();
    admin_loop_->stop();
    for (auto& thread : threads_) thread.join();
    tracing_->stop();
    admin_.reset();  // Before the store, which it may still ask.
    // Observations of shadow routes may still wait for these, on loops that no longer run. Their
    // digests ask the store for its secrets.
    digesting_.reset();
    spill_->threads().end();
    store_.reset();
    shared_->shadow->close();
    log_(LogLevel::info, "stopped", {});
  }

  // False: the drain time is over, or a second signal requests to stop at once.
  bool wait_until_idle() {
    // Long enough for a request that was just dispatched, and for settling it.
    const auto end = MonotonicClock::now() +
                     std::max<Millis>(limits::drain_time_max, limits::drain_receive_max + longest_);
    while (MonotonicClock::now() < end && ends_asked_ < 2) {
      if (gateway_server_->drained() && dispatcher_->drained()) return true;
      pause();
    }
    return false;
  }

  const SettingsSource& source_;
  GatewayFlags given_;
  Reloads reloads_;
  const GatewayOptions options_;  ///< As at the start; `settings_` are the current ones.
  ProcessLog& process_log_;
  LogSink log_;
  Millis longest_{};
  std::unique_ptr<metrics::Registry> registry_;
  std::optional<Tracing> tracing_;
  std::unique_ptr<gateway::Observing> observing_;
  sigset_t signals_{};
  PassedSockets passed_;
  Handover handover_;
  ServiceManager manager_;
  bool sockets_stay_ = false;  ///< Also when this process has ended.
  int ends_asked_ = 0;         ///< By SIGTERM or SIGINT.
  std::atomic<bool> draining_{false};
  std::atomic<bool> store_answers_{true};
  std::unique_ptr<CircuitBreakerStore> store_;
  std::unique_ptr<http::SpillSpace> spill_;
  std::unique_ptr<gateway::GatewayShared> shared_;
  std::optional<Offload> digesting_;  ///< Created after signals are blocked, as all threads.
  gateway::SharedSettings settings_;
  gateway::SharedSettings admin_settings_;  ///< The same; only the admin loop's thread uses it.
  std::shared_ptr<const admin::RoutePolicies> admin_policies_;  ///< Likewise.
  std::vector<std::unique_ptr<Loop>> loops_;
  std::unique_ptr<Loop> dispatch_loop_;
  std::unique_ptr<gateway::Dispatcher> dispatcher_;
  std::unique_ptr<gateway::SearchIndex> search_;  ///< On the same loop.
  std::unique_ptr<Loop> admin_loop_;
  std::unique_ptr<LoopWatch> loop_watch_;  ///< On the admin loop.
  std::vector<std::unique_ptr<gateway::Gateway>> gateways_;
  std::unique_ptr<gateway::Explainer> explainer_;  ///< Of the admin loop's thread.
  std::unique_ptr<admin::AuditTrail> audit_;       ///< Likewise.
  std::unique_ptr<http::Service> admin_;
  std::vector<http::ServingLoop> serving_;
  Certificates certificates_;
  std::unique_ptr<http::Server> gateway_server_;
  std::unique_ptr<http::Server> admin_server_;
  std::vector<std::thread> threads_;
  std::unique_ptr<Background> background_;
};

}  // namespace

int run_gateway(const SettingsSource& source) {
  auto read = source.read();
  if (!read) return source.refuse("gateway", read.error());
  if (read->options.core_dumps) allow_core_dumps();
  ProcessLog log(read->options.log_format);
  log_warnings(*read, log.sink());
  GatewayProcess process(source, std::move(*read), log);
  return process.run();
}

}  // namespace idem::cli
