#include "admin/admin.hpp"
#include "cli/commands.hpp"
#include "gateway/gateway.hpp"
#include "gateway/waiters.hpp"
#include "workers/reaper.hpp"
#include "workers/runner.hpp"
#include "workers/sweeper.hpp"

#include <idem/open_store.hpp>
#include <idem/store_wait.hpp>

#include <malloc.h>
#include <sys/resource.h>
#include <csignal>
#include <cstdio>
#include <thread>

namespace idem::cli {
namespace {

/// Signals are taken by the main thread only, which waits for them.
sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  // A file at the process's size limit is a full disk, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  return set;
}

/// glibc raises this threshold with each large block that is freed, up to 32 MiB, and from then on
/// keeps such blocks in every thread's heap: the canonical form of one large JSON body would stay
/// for good. A fixed one gives them back to the kernel at once.
void give_large_blocks_back() {
  constexpr int block_bytes = 1024 * 1024;
  ::mallopt(M_MMAP_THRESHOLD, block_bytes);
}

/// Each connection costs a descriptor, and its upstream another. Interactive shells still give a
/// process 1,024 of those it may have; running out would starve the honest clients first.
void take_all_descriptors() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

class GatewayProcess {
 public:
  GatewayProcess(const GatewayOptions& options, LogSink log)
      : options_(options), log_(std::move(log)) {}

  int run() {
    signals_ = block_signals();
    take_all_descriptors();
    if (const auto opened = open_store_for(options_.settings); !opened) {
      return fail(opened.error());
    }
    auto spill = http::SpillSpace::open(options_.spill_dir);
    if (!spill) return fail("--spill-dir: " + spill.error());
    spill_ = std::move(*spill);
    auto waiters = std::make_shared<gateway::Waiters>(
        *store_, options_.connections / limits::waiters_connections_divisor);
    store_->watch(waiters);
    registry_ =
        std::make_unique<metrics::Registry>(options_.tenant_label, store_->identity().secret);
    observing_ = std::make_unique<gateway::Observing>(*registry_, log_, options_.log_requests);
    shared_ =
        std::make_unique<gateway::GatewayShared>(*store_, *spill_, std::move(waiters), *observing_);
    auto settings = std::make_shared<gateway::GatewaySettings>(options_.settings);
    if (const auto adopted = adopt_routes(*settings); !adopted) return fail(adopted.error());
    settings_ = std::move(settings);
    if (const auto read = read_certificate(); !read) return fail(read.error());
    build_loops();
    if (const auto opened = open_listeners(); !opened) return fail(opened.error());
    start();
    for (int signal = 0; sigwait(&signals_, &signal) == 0 && signal == SIGHUP;) reload();
    return stop();
  }

 private:
  int fail(const std::string& sentence) {
    std::fprintf(stderr, "idem gateway: %s\n", sentence.c_str());
    return failed;
  }

  std::expected<void, std::string> open_store_for(const gateway::GatewaySettings& settings) {
    const IdentitySettings identity{.key_scope = std::string(name_of(settings.key_scope)),
                                    .scope_source = settings.scope.text,
                                    .secrets = options_.secrets};
    auto store = open_store(options_.store, identity, options_.migrate);
    if (!store) return std::unexpected(std::move(store.error()));
    store_ = std::move(*store);
    return {};
  }

  /// The store records how the routes name operations, or says why records would be lost; nothing
  /// may be served by routes that it has not adopted. Waits for the store.
  std::expected<void, std::string> adopt_routes(gateway::GatewaySettings& settings) {
    auto adopted = ask_and_wait(*store_, AdoptRoutes{gateway::names_of(settings.routes.all())});
    if (!adopted) return std::unexpected(options_.store + ": " + adopted.error().detail);
    if (!adopted->why_not.empty()) return std::unexpected("routes: " + adopted->why_not);
    settings.generation = adopted->generation;
    return {};
  }

  std::expected<void, std::string> read_certificate() {
    if (options_.tls.certificate.empty()) return {};
    auto context = http::TlsContext::for_server(options_.tls, tls_.get());
    if (!context) return std::unexpected("TLS: " + context.error());
    tls_ = std::move(*context);
    return {};
  }

  // Keys that the issuer took back must end, also for tokens that were verified just now.
  std::expected<void, std::string> read_token_keys() {
    if (!settings_->jwt) return {};
    auto verifier = gateway::JwtVerifier::load(settings_->jwt->rules());
    if (!verifier) return std::unexpected("token keys: " + verifier.error());
    auto changed = std::make_shared<gateway::GatewaySettings>(*settings_);
    changed->jwt = std::move(*verifier);
    settings_ = std::move(changed);
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      loops_[i]->post(
          [gateway = gateways_[i].get(), settings = settings_] { gateway->use(settings); });
    }
    return {};
  }

  // What cannot be read leaves the old certificate or keys in use: a gateway that is up stays up.
  void reload() {
    if (!tls_ && !settings_->jwt) {
      return log_(LogLevel::info, "reload_ignored",
                  {{"reason", "neither a certificate nor token keys are used"}});
    }
    for (const auto& read : {read_certificate(), read_token_keys()}) {
      if (!read) return log_(LogLevel::error, "reload_failed", {{"reason", read.error()}});
    }
    if (tls_) gateway_server_->use_tls(tls_);
    log_(LogLevel::info, "reloaded", {{"certificate", options_.tls.certificate}});
  }

  void build_loops() {
    const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    const unsigned count = options_.threads > 0 ? options_.threads : cores;
    for (unsigned i = 0; i < count; ++i) {
      auto& loop = *loops_.emplace_back(std::make_unique<http::Loop>());
      gateways_.push_back(gateway::make_gateway(loop, *shared_, settings_));
      serving_.push_back({&loop, gateways_.back().get()});
    }
    // The operator has a loop of its own: it answers also while the others are busy or draining.
    admin_loop_ = std::make_unique<http::Loop>();
    admin_ = admin::make_admin({.loop = *admin_loop_,
                                .store = *store_,
                                .spill = *spill_,
                                .registry = *registry_,
                                .draining = draining_,
                                .log = log_,
                                .gauges = [this] { return gauges(); },
                                .parse_duration = parse_duration,
                                .hosts = options_.admin_hosts,
                                .evidence_grace = options_.evidence_grace});
  }

  metrics::Gauges gauges() const {
    return {.census = {},
            .open_connections = gateway_server_->open_connections(),
            .refused_connections = gateway_server_->refused_connections(),
            .unsettled_attempts = shared_->unsettled.load()};
  }

  std::expected<void, std::string> open_listeners() {
    http::Admission::Options admission{options_.connections, options_.connections_per_address,
                                       log_};
    auto gateway = http::Server::listen(options_.listen, serving_, options_.timers, admission);
    if (!gateway) return std::unexpected("--listen: " + gateway.error());
    gateway_server_ = std::move(*gateway);
    if (options_.admin.empty()) return {};
    auto admin = http::Server::listen(options_.admin, {{admin_loop_.get(), admin_.get()}},
                                      options_.timers, {});
    if (!admin) return std::unexpected("--admin: " + admin.error());
    admin_server_ = std::move(*admin);
    return {};
  }

  void start() {
    if (tls_) gateway_server_->use_tls(tls_);
    gateway_server_->start();
    if (admin_server_) admin_server_->start();
    for (auto& loop : loops_) threads_.emplace_back([running = loop.get()] { running->run(); });
    threads_.emplace_back([this] { admin_loop_->run(); });
    auto& shard = registry_->add_shard();  // Both workers run on one thread.
    runner_ = std::make_unique<workers::Runner>(
        std::vector<workers::RunOnce>{
            [this, &shard] { return workers::sweep_once(*store_, log_, shard); },
            [this, &shard] { return workers::reap_once(*store_, log_, shard); }},
        limits::sweep_interval);
    announce("gateway", *gateway_server_);
    if (admin_server_) announce("admin", *admin_server_);
  }

  void announce(std::string role, const http::Server& server) {
    log_(LogLevel::info, "listening", {{"address", server.address()}, {"role", std::move(role)}});
  }

  // What runs is finished and settled; who is idle is let go; then the store is closed.
  int stop() {
    log_(LogLevel::info, "draining", {});
    draining_.store(true);
    gateway_server_->drain();
    if (!wait_until_idle()) {
      // What is cut off here is in the store as dispatched, and becomes unknown by its lease.
      log_(LogLevel::warning, "drain_timed_out", {});
      std::_Exit(failed);
    }
    runner_->stop();
    for (auto& loop : loops_) loop->stop();
    admin_loop_->stop();
    for (auto& thread : threads_) thread.join();
    store_.reset();
    log_(LogLevel::info, "stopped", {});
    return done;
  }

  // False: the drain time is over, or a second signal asked to stop at once.
  bool wait_until_idle() {
    // Long enough for a request that had just been dispatched, and for its settling.
    Millis longest{};
    for (const auto& route : settings_->routes.all()) {
      longest = std::max(longest, route.upstream_timeout + limits::lease_margin);
    }
    const auto end = MonotonicClock::now() + std::max<Millis>(limits::drain_time_max, longest);
    while (MonotonicClock::now() < end) {
      if (gateway_server_->drained()) return true;
      const timespec pause{0, 5'000'000};
      const int signal = sigtimedwait(&signals_, nullptr, &pause);
      if (signal > 0 && signal != SIGHUP) return false;
    }
    return false;
  }

  const GatewayOptions& options_;
  LogSink log_;
  sigset_t signals_{};
  std::atomic<bool> draining_{false};
  std::unique_ptr<Store> store_;
  std::unique_ptr<http::SpillSpace> spill_;
  std::unique_ptr<metrics::Registry> registry_;
  std::unique_ptr<gateway::Observing> observing_;
  std::unique_ptr<gateway::GatewayShared> shared_;
  gateway::SharedSettings settings_;
  std::vector<std::unique_ptr<http::Loop>> loops_;
  std::unique_ptr<http::Loop> admin_loop_;
  std::vector<std::unique_ptr<gateway::Gateway>> gateways_;
  std::unique_ptr<http::Service> admin_;
  std::vector<http::ServingLoop> serving_;
  std::shared_ptr<const http::TlsContext> tls_;
  std::unique_ptr<http::Server> gateway_server_;
  std::unique_ptr<http::Server> admin_server_;
  std::vector<std::thread> threads_;
  std::unique_ptr<workers::Runner> runner_;
};

}  // namespace

int run_gateway(const GatewayOptions& options) {
  give_large_blocks_back();
  GatewayProcess process(options, stderr_log(options.log_format));
  return process.run();
}

}  // namespace idem::cli
