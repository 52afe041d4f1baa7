#include "http.hpp"

#include <idem/adapters/httplib.hpp>
#include <idem/crash_point.hpp>
#include <idem/open_store.hpp>

#include <cstdio>
#include <fstream>

namespace tutorial {
namespace {

void write_log(idem::LogLevel, std::string_view event,
               std::initializer_list<idem::LogField> fields) {
  std::string line(event);
  for (const auto& field : fields) line += " " + std::string(field.name) + "=" + field.value;
  std::fprintf(stderr, "%s\n", line.c_str());
}

std::string shown(const idem::SqlValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : "-";
}

void show_payments(idem::Engine& engine, httplib::Response& out) {
  std::string text;
  const auto rows =
      engine.transactions()->run("SELECT state, id, charge FROM payments ORDER BY id");
  if (!rows) out.status = 503;
  for (const auto& row : rows.value_or(idem::SqlRows{})) {
    text += shown(row[0]) + "  " + shown(row[1]) + "  " + shown(row[2]) + "\n";
  }
  out.set_content(text, "text/plain");
}

}  // namespace

Words words_of(int count, char** words) {
  Words found;
  if (count > 1) found.store = words[1];
  if (count > 2) found.port = std::atoi(words[2]);
  if (count > 3) found.provider = words[3];
  if (count > 4) std::ifstream(words[4]) >> found.secret;
  return found;
}

std::unique_ptr<idem::Engine> open_engine(const Words& words) {
  auto store = idem::open_store(words.store, {});
  if (!store) std::fprintf(stderr, "%s\n", store.error().c_str()), std::exit(1);
  auto engine = std::make_unique<idem::Engine>(
      std::move(*store), idem::EngineOptions{.owner = "tutorial", .log = write_log});
  if (engine->transactions() == nullptr) {
    std::fputs("this store cannot hold business rows\n", stderr);
    std::exit(1);
  }
  const auto made = engine->transactions()->run(
      "CREATE TABLE IF NOT EXISTS payments"
      " (id TEXT PRIMARY KEY, request TEXT, state TEXT, charge TEXT)");
  if (!made) std::fprintf(stderr, "%s\n", made.error().c_str()), std::exit(1);
  return engine;
}

Reply post(const std::string& url, const std::string& body, const std::string& key) {
  const auto path = url.find('/', url.find("://") + 3);
  httplib::Client client(url.substr(0, path));
  client.set_connection_timeout(0, 500'000);
  client.set_write_timeout(0, 500'000);
  client.set_read_timeout(0, 500'000);
  httplib::Headers fields;
  if (!key.empty()) fields.emplace("Idempotency-Key", key);
  const auto answer = client.Post(url.substr(path), fields, body, "application/json");
  idem::crash_point(idem::CrashPoint::dispatch_sent);
  if (answer) return {answer->status, true, answer->body};
  const auto error = answer.error();
  return {0, error != httplib::Error::Connection && error != httplib::Error::ConnectionTimeout, {}};
}

int serve(idem::Engine& engine, int port, const std::map<std::string, Handler>& handlers) {
  httplib::Server server;
  for (const auto& [path, handler] : handlers) {
    server.Post(path, [&handler](const httplib::Request& http, httplib::Response& out) {
      // The proxy in front of this service has checked the tenant.
      const auto request = idem::to_idem(http, http.get_header_value("X-Tenant-Id"));
      if (!request) return idem::to_http(request.error(), out);
      const idem::Response answer = handler(*request);
      idem::crash_point(idem::CrashPoint::answer_before_first_byte);
      idem::to_http(answer, out);
    });
  }
  server.Get("/payments", [&engine](const httplib::Request&, httplib::Response& out) {
    show_payments(engine, out);
  });
  const bool bound = port > 0 && server.bind_to_port("127.0.0.1", port);
  const int found = port == 0 ? server.bind_to_any_port("127.0.0.1") : bound ? port : -1;
  if (found < 0) return std::fprintf(stderr, "port %d is taken\n", port), 1;
  std::fprintf(stderr, "listening address=127.0.0.1:%d role=tutorial\n", found);
  return server.listen_after_bind() ? 0 : 1;
}

}  // namespace tutorial
