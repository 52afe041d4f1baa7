// A payments API on libidem: each key is one payment, after every crash and retry. README.md lists
// what happens at each crash.

#include "operations.hpp"

#include <idem/adapters/httplib.hpp>
#include <idem/open_store.hpp>
#include <idem/relay.hpp>
#include <idem/webhook.hpp>

#include <pthread.h>

#include <csignal>
#include <cstdio>
#include <thread>

namespace {

void serve(idem::PhasedGuard& guard, const httplib::Request& http, httplib::Response& out) {
  // The proxy in front of this service has checked X-Tenant-Id.
  const auto request = idem::to_idem(http, http.get_header_value("X-Tenant-Id"));
  idem::to_http(request ? guard.serve(*request) : request.error(), out);
}

void write_log(idem::LogLevel level, std::string_view event,
               std::initializer_list<idem::LogField> fields) {
  std::string line = level == idem::LogLevel::info ? "info " : "warning ";
  line += event;
  for (const auto& field : fields) line += " " + std::string(field.name) + "=" + field.value;
  std::fprintf(stderr, "%s\n", line.c_str());
}

idem::PhasedOptions rules(const payments::Settings& settings, std::string operation) {
  idem::PhasedOptions options;
  options.guard.operation = std::move(operation);
  options.guard.lease = settings.lease;
  options.guard.wait = std::chrono::seconds(10);
  if (!settings.completes) options.complete_interval = idem::Millis(0);
  return options;
}

/// Receipts as signed webhooks; their receiver recognises a repeat by its id.
std::vector<idem::Destination> destinations(const payments::Settings& settings) {
  if (settings.receipts.empty()) return {};
  auto send = idem::webhook(
      {.url = settings.receipts, .secrets = {settings.receipts_secret}, .source = "/payments"});
  if (!send) {
    std::fprintf(stderr, "%s\n", send.error().c_str());
    std::exit(2);
  }
  idem::Destination receipts{.name = "receipts", .send = std::move(*send)};
  receipts.timeout = settings.call_timeout;
  receipts.repetition.deduplicates = std::chrono::hours(24);
  return {receipts};
}

/// Ends the server at the first signal, when its requests are answered.
void stop_at_signal(const sigset_t& signals, httplib::Server& server) {
  int number = 0;
  sigwait(&signals, &number);
  server.stop();
}

}  // namespace

int main(int count, char** words) {
  const auto settings = payments::parse_settings(count, words);
  if (!settings) return 2;
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  auto store = idem::open_store(settings->store, {});
  if (!store) return std::fprintf(stderr, "%s\n", store.error().c_str()), 1;
  idem::Engine engine(std::move(*store), {.owner = "payments", .log = write_log});
  if (engine.transactions() == nullptr) {
    return std::fputs("this store cannot hold business rows\n", stderr), 1;
  }
  if (const auto why = payments::make_tables(engine)) {
    return std::fprintf(stderr, "%s\n", why->c_str()), 1;
  }
  const payments::ProviderClient provider(*settings);
  idem::PhasedGuard payments(engine, rules(*settings, "create-payment"),
                             payments::payment_phases(provider));
  idem::PhasedGuard refunds(engine, rules(*settings, "create-refund"),
                            payments::refund_phases(provider));
  idem::RelayOptions relaying;
  relaying.lease = settings->lease;
  const idem::Relay relay(engine, destinations(*settings), relaying);

  httplib::Server server;
  server.Post("/payments", [&](const httplib::Request& http, httplib::Response& out) {
    serve(payments, http, out);
  });
  server.Post("/refunds", [&](const httplib::Request& http, httplib::Response& out) {
    serve(refunds, http, out);
  });
  server.Get(R"(/payments/([\w]+))", [&](const httplib::Request& http, httplib::Response& out) {
    idem::to_http(
        payments::show_payment(engine, http.get_header_value("X-Tenant-Id"), http.matches[1]), out);
  });

  const auto colon = settings->listen.rfind(':');
  const std::string host = settings->listen.substr(0, colon);
  const int wanted = std::atoi(settings->listen.c_str() + colon + 1);
  const bool bound = wanted > 0 && server.bind_to_port(host, wanted);
  const int port = wanted == 0 ? server.bind_to_any_port(host) : bound ? wanted : -1;
  if (port < 0) return std::fprintf(stderr, "%s is taken\n", settings->listen.c_str()), 1;
  std::fprintf(stderr, "listening address=%s:%d role=payments\n", host.c_str(), port);
  const std::jthread stopper([&] { stop_at_signal(signals, server); });
  return server.listen_after_bind() ? 0 : 1;
}
