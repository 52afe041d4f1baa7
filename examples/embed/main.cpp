#include <idem/adapters/httplib.hpp>
#include <idem/guard.hpp>
#include <idem/open_store.hpp>

#include <cstdio>

// POST /payments of a service with a database: a repeated request, also after a crash, is one
// payment. Usage: embed [STORE-URL] [PORT]

int main(int argc, char** argv) {
  auto store = idem::open_store(argc > 1 ? argv[1] : "sqlite:./payments.db", {});
  if (!store) return std::fprintf(stderr, "%s\n", store.error().c_str()), 1;
  idem::Engine engine(std::move(*store));
  const auto made = engine.transactions()->run(
      "CREATE TABLE IF NOT EXISTS payments (id TEXT PRIMARY KEY, tenant TEXT, request TEXT)");
  if (!made) return std::fprintf(stderr, "%s\n", made.error().c_str()), 1;
  idem::Guard payments(engine, {.operation = "create-payment", .wait = std::chrono::seconds(10)});

  httplib::Server server;
  server.Post("/payments", [&](const httplib::Request& http, httplib::Response& out) {
    // The proxy in front of this service has checked the tenant.
    const auto request = idem::to_idem(http, http.get_header_value("X-Tenant-Id"));
    if (!request) return idem::to_http(request.error(), out);
    const auto pay = [&](idem::Transaction& tx) -> idem::Outcome {
      const std::string id = "pay_" + idem::to_hex(idem::random_token().bytes);
      tx.run("INSERT INTO payments VALUES ($1, $2, $3)", {id, request->scope, request->body});
      return idem::Response{201, {{"Location", "/payments/" + id}}, "{\"id\":\"" + id + "\"}"};
    };
    idem::to_http(payments.serve_in_transaction(*request, pay), out);
  });
  const int wanted = argc > 2 ? std::atoi(argv[2]) : 9000;
  const bool bound = wanted > 0 && server.bind_to_port("127.0.0.1", wanted);
  const int port = wanted == 0 ? server.bind_to_any_port("127.0.0.1") : bound ? wanted : -1;
  if (port < 0) return std::fprintf(stderr, "port %d is taken\n", wanted), 1;
  std::fprintf(stderr, "listening address=127.0.0.1:%d role=embed\n", port);
  return server.listen_after_bind() ? 0 : 1;
}
