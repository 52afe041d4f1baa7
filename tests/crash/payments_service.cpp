#include "crash/payments_service.hpp"
#include "support/back_off.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <csignal>
#include <fstream>

namespace idem::test {
namespace {

std::string make_secret(const std::filesystem::path& folder) {
  const auto file = folder / "secret";
  std::ofstream(file) << "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n";
  return file.string();
}

std::vector<std::string> provider_flags(const std::string& provider_is, const std::string& secret) {
  std::vector<std::string> flags{"--inbox-secret-file", secret};
  if (provider_is == "deduplicates") flags.insert(flags.end(), {"--deduplicate", "24h"});
  return flags;
}

}  // namespace

PaymentsService::PaymentsService(const std::string& store, std::string provider_is)
    : shared_(store == "sqlite" ? nullptr : std::make_unique<SharedStoreUrl>(store)),
      provider_is_(std::move(provider_is)),
      secret_file_(make_secret(dir_.path())),
      provider_("127.0.0.1:0", provider_flags(provider_is_, secret_file_)) {}

void PaymentsService::start(const std::string& dies_at, bool relays) {
  ProcessOptions options{
      .program = built_program("payments-crash"),
      .arguments = {"--listen", "127.0.0.1:0", "--provider", "http://" + provider_.address(),
                    "--provider-is", provider_is_, "--lease", "1500", "--call-timeout", "600",
                    "--store",
                    shared_ ? shared_->url() : "sqlite:" + (dir_.path() / "service.db").string()}};
  if (relays) {
    for (const std::string& word :
         {std::string("--receipts"), "http://" + provider_.address() + "/inbox",
          std::string("--receipts-secret-file"), secret_file_}) {
      options.arguments.push_back(word);
    }
  }
  if (!dies_at.empty()) {
    options.environment.push_back("IDEM_CRASH_AT=" + dies_at);
    options.arguments.emplace_back("--no-completer");
  }
  process_ = std::make_unique<Process>(options);
  address_ = process_->wait_for_address("payments");
}

void PaymentsService::stop() {
  process_->signal(SIGTERM);
  process_->wait();
}

Request PaymentsService::payment(const std::string& key, int amount) {
  Request request =
      charge(key, {}, fmt::format(R"({{"amount":{},"currency":"eur","source":"tok"}})", amount));
  request.target = "/payments";
  return request;
}

std::map<std::string, int> PaymentsService::charges() const {
  std::map<std::string, int> made;
  const auto answer =
      send_once(provider_.address(), {.method = "GET", .target = "/ledger", .fields = {}});
  const auto ledger = parse_json(answer.body);
  if (!ledger) return made;
  for (const auto& [key, entry] : (*ledger)["keys"].members) {
    made[key] = static_cast<int>(entry["effects"].integer);
  }
  return made;
}

Json PaymentsService::inbox() const {
  const auto answer =
      send_once(provider_.address(), {.method = "GET", .target = "/inbox", .fields = {}});
  return parse_json(answer.body).value_or(Json{});
}

bool PaymentsService::wait_until(const std::function<bool(const Json& inbox)>& there,
                                 std::chrono::milliseconds at_most) const {
  const auto until = std::chrono::steady_clock::now() + at_most;
  while (!there(inbox())) {
    if (std::chrono::steady_clock::now() > until) return false;
    back_off();
  }
  return true;
}

bool PaymentsService::wait_for_receipts(std::size_t count) const {
  return wait_until([&](const Json& inbox) { return inbox["ids"].members.size() >= count; });
}

bool PaymentsService::stop_when_all_is_delivered() {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    stop();
    if (count("SELECT count(*) FROM idem_outbox WHERE state <> 'delivered'",
              "SELECT count(*) FROM idem.outbox WHERE state <> 'delivered'") == 0) {
      return true;
    }
    if (std::chrono::steady_clock::now() > until) return false;
    start();
    const int before = static_cast<int>(inbox()["arrivals"].integer);
    // Until its claim is over and the receiver gets it again.
    wait_until([&](const Json& now) { return now["arrivals"].integer > before; },
               std::chrono::seconds(2));
  }
}

int PaymentsService::count(const std::string& sqlite, const std::string& postgres) const {
  if (shared_) return std::stoi(Psql(shared_->database()).run(postgres));
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open((dir_.path() / "service.db").c_str(), &db), SQLITE_OK);
  int count = -1;
  const auto keep = [](void* out, int, char** cells, char**) {
    *static_cast<int*>(out) = std::stoi(cells[0]);
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(db, sqlite.c_str(), keep, &count, nullptr), SQLITE_OK);
  sqlite3_close(db);
  return count;
}

}  // namespace idem::test
