#include "admin/admin.hpp"
#include "admin/audit/audit_trail.hpp"
#include "cli/commands/background.hpp"
#include "cli/commands/core_dumps.hpp"
#include "cli/commands/farewell.hpp"
#include "cli/commands/signals.hpp"
#include "cli/process/service_manager.hpp"
#include "cli/settings/noted_settings.hpp"
#include "cli/settings/opening.hpp"
#include "cli/settings/settings_source.hpp"
#include "cli/settings/units.hpp"
#include "gateway/route.hpp"

#include <csignal>
#include <cstdio>
#include <thread>

namespace idem::cli {
namespace {

class WorkerProcess {
 public:
  WorkerProcess(ReadSettings read, ProcessLog& process_log)
      : given_(std::move(read.given)),
        options_(std::move(read.options)),
        process_log_(process_log),
        log_(process_log.sink()) {}

  int run() {
    signals_ = block_signals();
    if (const auto opened = open(); !opened) {
      return process_log_.fail_start("worker", opened.error());
    }
    start();
    int signal = 0;
    sigwait(&signals_, &signal);
    while (signal == SIGHUP || signal == SIGUSR2) {
      log_(LogLevel::warning, signal == SIGHUP ? "reload_refused" : "handover_refused",
           {{"reason", "a worker reads its settings only at its start; restart it"}});
      sigwait(&signals_, &signal);
    }
    ServiceManager::stopping();
    return stop();
  }

 private:
  std::expected<void, StartFailure> open() {
    auto store = open_configured_store(options_, false, log_);
    if (!store) return std::unexpected(std::move(store.error()));
    store_ = std::move(*store);
    audit_ = std::make_unique<admin::AuditTrail>(loop_, *store_, log_);
    tell_of_lost_lines(process_log_, *audit_, "worker " + options_.admin);
    if (!options_.destinations.empty() && store_->transactions() == nullptr) {
      return std::unexpected(StartFailure{no_outbox(), usage});
    }
    auto spill = open_spill_folder(given_, options_);
    if (!spill) return std::unexpected(StartFailure{spill.error()});
    spill_ = std::move(*spill);
    registry_ =
        std::make_unique<metrics::Registry>(options_.tenant_label, store_->identity().secret);
    registry_->version(IDEM_VERSION);
    for (const auto& [name, provider] : options_.providers) {
      registry_->add_provider(name, provider->counts);
    }
    return options_.admin.empty() ? std::expected<void, StartFailure>() : listen();
  }

  std::expected<void, StartFailure> listen() {
    auto login = admin::Login::open(options_.login, log_);
    if (!login) {
      return std::unexpected(StartFailure{given_.admin.place.text() + ": " + login.error()});
    }
    admin_ = admin::make_admin({.loop = loop_,
                                .store = *store_,
                                .spill = *spill_,
                                .registry = *registry_,
                                .draining = draining_,
                                .log = log_,
                                .audit = *audit_,
                                .login = std::move(*login),
                                .gauges =
                                    [this] {
                                      metrics::Gauges gauges;
                                      gauges.log_lines_dropped = process_log_.lost();
                                      gauges.destinations = names_of(options_.destinations);
                                      return gauges;
                                    },
                                .watches_store = false,
                                .parse_duration = parse_duration,
                                .naming_parts =
                                    [this](const std::string& operation) {
                                      return options_.settings.routes.naming_parts(operation);
                                    },
                                .hosts = options_.admin_hosts,
                                .links = options_.links,
                                .evidence_grace = options_.evidence_grace,
                                .provider_of =
                                    [this](const Record& record) {
                                      auto name = options_.settings.routes.provider_of(record);
                                      return options_.providers.contains(name) ? name : "";
                                    }});
    auto server =
        http::Server::listen(options_.admin, {{&loop_, admin_.get()}}, options_.timers, {});
    if (!server) {
      return std::unexpected(StartFailure{given_.admin.place.text() + ": " + server.error()});
    }
    server_ = std::move(*server);
    if (options_.admin_tls.certificate.empty()) return {};
    auto tls = http::TlsContext::for_server(options_.admin_tls);
    if (!tls) {
      return std::unexpected(StartFailure{given_.admin_tls_cert.place.text() + ": " + tls.error()});
    }
    server_->use_tls(std::move(*tls));
    return {};
  }

  void start() {
    if (server_) server_->start();
    thread_ = std::thread([this] { loop_.run("idem-admin"); });
    background_ = std::make_unique<Background>(
        Background::Parts{*store_, *store_, log_, *registry_, options_,
                          std::make_shared<const gateway::GatewaySettings>(options_.settings)});
    log_(
        LogLevel::info, "working",
        {{"destinations", options_.destinations.size()}, {"providers", options_.providers.size()}});
    if (server_) {
      log_(LogLevel::info, "listening", {{"address", server_->address()}, {"role", "admin"}});
    }
    ServiceManager::ready();
    auto settings = noted_settings(given_, Purpose::worker, options_.secrets);
    loop_.post([this, settings = std::move(settings)]() mutable {
      audit_->note_settings("config.start", "worker " + options_.admin, std::move(settings));
    });
  }

  // Finishes and records the work in progress, then closes the store.
  int stop() {
    log_(LogLevel::info, "draining", {});
    draining_.store(true);
    background_.reset();
    finish_log(process_log_, *audit_);
    loop_.stop();
    thread_.join();
    spill_->threads().end();
    admin_.reset();
    store_.reset();
    log_(LogLevel::info, "stopped", {});
    return done;
  }

  GatewayFlags given_;
  const GatewayOptions options_;
  ProcessLog& process_log_;
  LogSink log_;
  sigset_t signals_{};
  std::atomic<bool> draining_{false};
  std::unique_ptr<Store> store_;
  std::unique_ptr<http::SpillSpace> spill_;
  std::unique_ptr<metrics::Registry> registry_;
  Loop loop_;
  std::unique_ptr<admin::AuditTrail> audit_;
  std::unique_ptr<http::Service> admin_;
  std::unique_ptr<http::Server> server_;
  std::thread thread_;
  std::unique_ptr<Background> background_;
};

}  // namespace

int run_worker(const SettingsSource& source) {
  auto read = source.read();
  if (!read) return source.refuse("worker", read.error());
  if (read->options.core_dumps) allow_core_dumps();
  ProcessLog log(read->options.log_format);
  log_warnings(*read, log.sink());
  WorkerProcess process(std::move(*read), log);
  return process.run();
}

}  // namespace idem::cli
