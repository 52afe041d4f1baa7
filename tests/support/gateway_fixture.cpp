#include "support/gateway_fixture.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <map>

#include "core/bytes/percent.hpp"
#include "support/external_data.hpp"
#include "support/json.hpp"
#include "support/shared_store.hpp"
#include "support/time_spent.hpp"

namespace idem::test {
namespace {

KeyCounts counts_of(const Json& entry) {
  KeyCounts counts{.effects = static_cast<int>(entry["effects"].integer),
                   .arrivals = static_cast<int>(entry["arrivals"].integer)};
  for (const auto& fence : entry["fences"].items) counts.fences.push_back(fence.string);
  return counts;
}

std::vector<std::string> provider_arguments(const std::string& listen,
                                            const std::vector<std::string>& flags) {
  std::vector<std::string> all{"--listen", listen, "--quiet"};
  all.insert(all.end(), flags.begin(), flags.end());
  return all;
}

/// The stores in place of a test's files. They end with the test, or one process of many tests
/// would fill the servers.
class StoresOfTest : public testing::EmptyTestEventListener {
 public:
  static StoresOfTest& there() {
    static auto* const all = [] {
      auto* made = new StoresOfTest;  // GoogleTest deletes it.
      testing::UnitTest::GetInstance()->listeners().Append(made);
      return made;
    }();
    return *all;
  }

  const SharedStoreUrl& of(const std::filesystem::path& file, const std::string& kind) {
    return stores_.try_emplace(file, kind).first->second;
  }

 private:
  void OnTestEnd(const testing::TestInfo&) override { stores_.clear(); }

  std::map<std::filesystem::path, SharedStoreUrl> stores_;
};

std::string store_url_of(const std::filesystem::path& file) {
  const auto* shared = shared_store_of(file);
  return shared == nullptr ? "sqlite:" + file.string() : shared->url();
}

std::vector<std::string> gateway_arguments(const GatewayOptions& options) {
  std::vector<std::string> words{
      "gateway",
      "--listen",
      options.listen,
      "--admin",
      "127.0.0.1:0",
      "--upstream",
      options.upstream.find("://") == std::string::npos ? "http://" + options.upstream
                                                        : options.upstream,
      "--store",
      options.store_url.empty() ? store_url_of(options.store) : options.store_url};
  words.insert(words.end(), options.scope.begin(), options.scope.end());
  words.insert(words.end(), options.flags.begin(), options.flags.end());
  return words;
}

}  // namespace

std::filesystem::path built_program(std::string_view name) {
  const char* folder = std::getenv("IDEM_BIN_DIR");
  return std::filesystem::path(folder != nullptr ? folder : IDEM_BIN_DIR) / name;
}

std::string live_store_kind() {
  const char* kind = std::getenv("IDEM_LIVE_STORE");
  return kind == nullptr ? "sqlite" : kind;
}

bool live_store_has_outbox() {
  const std::string kind = live_store_kind();
  return kind == "sqlite" || kind == "postgres" || kind == "mysql";
}

const SharedStoreUrl* shared_store_of(const std::filesystem::path& file) {
  const std::string kind = live_store_kind();
  if (kind == "sqlite") return nullptr;
  return &StoresOfTest::there().of(file, kind);
}

std::string store_content(const std::filesystem::path& file) {
  if (const auto* shared = shared_store_of(file)) return shared->content();
  return read_file(file) + read_file(file.string() + "-wal");
}

void spoil_records(const std::filesystem::path& file) {
  if (const auto* shared = shared_store_of(file)) return shared->spoil_records();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, "UPDATE idem_slots SET record = x'00'", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
}

Gateway::Gateway(GatewayOptions options) : options_(std::move(options)) { start(); }

void Gateway::start() {
  const TimeSpent spent("starting_gateways");
  process_ =
      std::make_unique<Process>(ProcessOptions{.program = built_program(options_.program),
                                               .arguments = gateway_arguments(options_),
                                               .environment = options_.environment,
                                               .file_bytes_max = options_.file_bytes_max,
                                               .passed = options_.passed,
                                               .passed_names = options_.passed_names,
                                               .output_pipe_bytes = options_.output_pipe_bytes,
                                               .hosts = options_.hosts});
  address_ = process_->wait_for_address("gateway");
  admin_ = address_.empty() ? std::string{} : process_->wait_for_address("admin");
}

int Gateway::terminate() {
  process_->signal(SIGTERM);
  return process_->exit_code();
}

void Gateway::restart(std::vector<std::string> environment, bool same_port) {
  process_->signal(SIGKILL);
  process_->wait();
  options_.environment = std::move(environment);
  if (same_port) options_.listen = address_;
  start();
}

Provider::Provider(const std::string& listen, const std::vector<std::string>& flags)
    : process_(
          {.program = built_program("provider"), .arguments = provider_arguments(listen, flags)}),
      address_(process_.wait_for_address("provider")) {}

LedgerCounts Provider::ledger() const {
  const auto answer = send_once(address_, {.method = "GET", .target = "/ledger"});
  LedgerCounts counts;
  const auto json = parse_json(answer.body);
  if (!json) return {.effects = -1, .arrivals = -1};
  counts.effects = static_cast<int>((*json)["effects"].integer);
  counts.arrivals = static_cast<int>((*json)["arrivals"].integer);
  for (const auto& [key, entry] : (*json)["keys"].members) counts.keys[key] = counts_of(entry);
  return counts;
}

KeyCounts Provider::of_key(std::string_view key) const {
  const auto answer =
      send_once(address_, {.method = "GET", .target = "/ledger?key=" + percent_encoded(key)});
  const auto json = parse_json(answer.body);
  return json ? counts_of(*json) : KeyCounts{.effects = -1, .arrivals = -1};
}

bool Provider::wait_held(std::string_view name, int count) const {
  const auto target = "/held?name=" + percent_encoded(name) + "&count=" + std::to_string(count);
  return send_once(address_, {.method = "GET", .target = target}).status == 200;
}

void Provider::release(std::string_view name) const {
  send_once(address_, {.method = "POST", .target = "/release?name=" + percent_encoded(name)});
}

void Provider::arm(std::string_view faults, int count, std::string_view path) const {
  const auto target = "/faults?list=" + percent_encoded(faults) +
                      "&count=" + std::to_string(count) + "&path=" + percent_encoded(path);
  EXPECT_EQ(send_once(address_, {.method = "POST", .target = target}).status, 200) << faults;
}

void Provider::arm_by_chance(std::string_view faults, double chance, unsigned seed) const {
  const auto target = "/faults?list=" + percent_encoded(faults) +
                      "&chance=" + std::to_string(chance) + "&seed=" + std::to_string(seed);
  EXPECT_EQ(send_once(address_, {.method = "POST", .target = target}).status, 200) << faults;
}

void Provider::queries(std::string_view how) const {
  const auto target = "/queries?" + std::string(how);
  EXPECT_EQ(send_once(address_, {.method = "POST", .target = target}).status, 200) << how;
}

}  // namespace idem::test
