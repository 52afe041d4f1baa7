#include <idem/fingerprint.hpp>
#include <idem/guard.hpp>
#include <idem/open_store.hpp>

#include <fmt/core.h>
#include <libpq-fe.h>
#include <sqlite3.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

/// The guard's cost: `library_bench WHAT URL REQUESTS THREADS` prints requests a second, where
/// each inserts one payment. WHAT: `bare`, the same business transaction without idempotency, as a
/// service would write it (prepared; one connection a thread, on SQLite one in all); `commit`, the
/// golden path; `one`, the golden path in one commit.

namespace {

using namespace idem;

constexpr const char* table =
    "CREATE TABLE IF NOT EXISTS payments (id TEXT PRIMARY KEY, tenant TEXT, request TEXT)";
constexpr const char* insert = "INSERT INTO payments VALUES ($1, $2, $3)";
constexpr const char* body = R"({"amount":1999,"currency":"EUR","source":"tok_visa"})";

std::string new_id() { return "pay_" + to_hex(random_token().bytes); }

[[noreturn]] void stop(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  std::exit(1);
}

/// Runs `one` so often in all, on so many threads, each of which makes its own by `make`.
template <class Make>
double per_second(int requests, int threads, Make make) {
  std::atomic<int> left = requests;
  std::vector<std::thread> running;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&] {
      auto one = make();
      while (left.fetch_sub(1) > 0) one();
    });
  }
  for (auto& thread : running) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return requests / took.count();
}

double bare_sqlite(const std::string& path, int requests, int threads) {
  sqlite3* db = nullptr;
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) stop("cannot be opened");
  // As the store has, too.
  sqlite3_exec(db,
               "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL",
               nullptr, nullptr, nullptr);
  sqlite3_exec(db, table, nullptr, nullptr, nullptr);
  sqlite3_stmt* statement = nullptr;
  sqlite3_prepare_v2(db, insert, -1, &statement, nullptr);
  std::mutex mutex;
  return per_second(requests, threads, [&] {
    return [&] {
      const std::string id = new_id();
      const std::lock_guard lock(mutex);
      sqlite3_bind_text(statement, 1, id.c_str(), -1, SQLITE_STATIC);
      sqlite3_bind_text(statement, 2, "acme", -1, SQLITE_STATIC);
      sqlite3_bind_text(statement, 3, body, -1, SQLITE_STATIC);
      if (sqlite3_step(statement) != SQLITE_DONE) stop(sqlite3_errmsg(db));
      sqlite3_reset(statement);
    };
  });
}

double bare_postgres(const std::string& uri, int requests, int threads) {
  const auto connect = [&] {
    PGconn* const connection = PQconnectdb(uri.c_str());
    if (PQstatus(connection) != CONNECTION_OK) stop(PQerrorMessage(connection));
    return connection;
  };
  PGconn* const first = connect();
  PQclear(PQexec(first, table));
  PQfinish(first);
  return per_second(requests, threads, [&] {
    PGconn* const connection = connect();
    PQclear(PQprepare(connection, "pay", insert, 3, nullptr));
    return [connection] {
      const std::string id = new_id();
      const char* const values[] = {id.c_str(), "acme", body};
      // As any work of more than one statement is done.
      PQclear(PQexec(connection, "BEGIN"));
      PGresult* const done = PQexecPrepared(connection, "pay", 3, values, nullptr, nullptr, 0);
      if (PQresultStatus(done) != PGRES_COMMAND_OK) stop(PQerrorMessage(connection));
      PQclear(done);
      PQclear(PQexec(connection, "COMMIT"));
    };
  });
}

double guarded(const std::string& url, bool in_one, int requests, int threads) {
  auto store = open_store(url, {});
  if (!store) stop(store.error());
  Engine engine(std::move(*store));
  if (const auto made = engine.transactions()->run(table); !made) stop(made.error());
  Guard guard(engine, {.operation = "create-payment"});
  const TransactionWork pay = [](Transaction& tx) -> Outcome {
    const std::string id = new_id();
    tx.run(insert, {id, std::string("acme"), std::string(body)});
    return Response{201, {{"Location", "/payments/" + id}}, "{\"id\":\"" + id + "\"}"};
  };
  return per_second(requests, threads, [&] {
    return [&] {
      const Request request{"POST",
                            "/payments",
                            {{"Content-Type", "application/json"}, {"Idempotency-Key", new_id()}},
                            body,
                            "acme"};
      const Response answer = in_one ? guard.serve_in_transaction(request, pay)
                                     : guard.serve(request, [&](const Request&, Execution& run) {
                                         return run.commit(pay);
                                       });
      if (answer.status != 201) stop(answer.body);
    };
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) stop("usage: library_bench bare|commit|one URL REQUESTS THREADS");
  const std::string what = argv[1];
  const std::string url = argv[2];
  const int requests = std::atoi(argv[3]);
  const int threads = std::atoi(argv[4]);
  const bool is_sqlite = url.starts_with("sqlite:");
  double rate = 0;
  if (what != "bare") {
    rate = guarded(url, what == "one", requests, threads);
  } else if (is_sqlite) {
    rate = bare_sqlite(url.substr(7), requests, threads);
  } else {
    rate = bare_postgres(url, requests, threads);
  }
  fmt::print("requests_per_second={:.0f}\n", rate);
}
