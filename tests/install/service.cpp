#include <idem/asio.hpp>
#include <idem/open_store.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

// A foreign service on Asio, whose own operations and those of the store's connections run
// beside each other. It knows none of the macros that Idem was compiled with.
namespace {

namespace asio = boost::asio;

constexpr int requests = 64;

[[noreturn]] void stop(const char* sentence) {
  std::fprintf(stderr, "%s\n", sentence);
  std::exit(1);
}

/// Lets the service's own timers, posts and frames come and go.
asio::awaitable<void> work_of_its_own() {
  const auto executor = co_await asio::this_coro::executor;
  asio::use_awaitable_t<> token;
  for (int i = 0; i < 8; ++i) {
    asio::steady_timer timer(executor, std::chrono::microseconds(i));
    auto expiry = timer.async_wait(token);
    co_await std::move(expiry);
    auto turn = asio::post(executor, token);
    co_await std::move(turn);
  }
}

asio::awaitable<idem::Outcome> answer(const idem::Request& request, idem::AsyncExecution& run,
                                      bool commits) {
  auto own = work_of_its_own();
  co_await std::move(own);
  const idem::Response paid{201, {}, "paid " + request.body};
  if (!commits) co_return paid;
  const idem::TransactionWork work = [&paid](idem::Transaction& transaction) -> idem::Outcome {
    transaction.run("INSERT INTO payments (body) VALUES ($1)", {paid.body});
    return paid;
  };
  auto committing = run.commit(work);
  idem::Outcome outcome = co_await std::move(committing);
  co_return outcome;
}

asio::awaitable<void> ask_twice(idem::AwaitableGuard& guard, std::string tenant, int number,
                                bool commits, std::atomic<int>& right) {
  const std::string name = std::to_string(number);
  const idem::Request request{
      .headers = {{"Idempotency-Key", "k" + name}}, .body = name, .scope = tenant};
  const auto handler = [commits](const idem::Request& asked, idem::AsyncExecution& run) {
    return answer(asked, run, commits);
  };
  for (int i = 0; i < 2; ++i) {
    auto serving = guard.serve(request, handler);
    const idem::Response response = co_await std::move(serving);
    if (response.status == 201 && response.body == "paid " + name) ++right;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) stop("usage: service STORE-URL TENANT");
  auto store = idem::open_store(argv[1], {.scope_source = "static:acme"});
  if (!store) stop(store.error().c_str());
  idem::Engine engine(std::move(*store));
  const bool commits = engine.transactions() != nullptr;
  if (commits && !engine.transactions()->run("CREATE TABLE IF NOT EXISTS payments (body TEXT)")) {
    stop("no table of payments");
  }
  idem::AwaitableGuard guard(engine, {.operation = "create-payment"});
  std::atomic<int> right = 0;
  {
    asio::io_context io;
    for (int i = 0; i < requests; ++i) {
      asio::co_spawn(io, ask_twice(guard, argv[2], i, commits, right), asio::detached);
    }
    std::jthread beside([&io] { io.run(); });
    io.run();
  }
  std::printf("%d of %d\n", right.load(), 2 * requests);
  return 0;
}
