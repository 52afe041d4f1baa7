#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/http_client.hpp"
#include "support/process.hpp"

namespace idem::test {

class SharedStoreUrl;

/// A program that was built beside the tests, or in IDEM_BIN_DIR of the environment.
std::filesystem::path built_program(std::string_view name);

/// The kind of store behind the gateways of the live lane in this run: "sqlite", or what
/// IDEM_LIVE_STORE of the environment names of shared_store_kinds().
std::string live_store_kind();
bool live_store_has_outbox();

/// The store in place of this SQLite file, the same for every caller; null: the file.
const SharedStoreUrl* shared_store_of(const std::filesystem::path& file);
/// The contents of the store of the gateways that were given this file: bytes to search in.
std::string store_content(const std::filesystem::path& file);
/// Makes every record in it unreadable, behind its back; nobody may have it open.
void spoil_records(const std::filesystem::path& file);

struct GatewayOptions {
  std::string upstream{};         ///< HOST:PORT, or a URL
  std::filesystem::path store{};  ///< A SQLite file, or the store in its place: live_store_kind().
  std::string store_url{};        ///< Instead of it.
  std::vector<std::string> flags{};
  std::vector<std::string> environment{};
  std::string program = "idem";  ///< Or `idem-crash`.
  std::string listen = "127.0.0.1:0";
  std::optional<std::uint64_t> file_bytes_max{};
  /// As in ProcessOptions.
  std::vector<int> passed{};
  std::string passed_names{};
  std::optional<int> output_pipe_bytes{};
  std::filesystem::path hosts{};
  /// Given unless empty.
  std::vector<std::string> scope = {"--scope", "header:X-Tenant-Id", "--trust-scope-header"};
};

/// A running `idem gateway`. Killed when this object goes, unless it ended before.
class Gateway {
 public:
  explicit Gateway(GatewayOptions options);

  /// True once both of its listeners accept.
  bool running() const { return !address_.empty() && !admin_.empty(); }
  const std::string& address() const { return address_; }
  const std::string& admin() const { return admin_; }
  Process& process() { return *process_; }

  void kill() { process_->signal(SIGKILL); }
  void stop() { process_->signal(SIGSTOP); }
  void carry_on() { process_->signal(SIGCONT); }
  /// SIGTERM, and its exit code once it ended.
  int terminate();
  /// Ends the old process with SIGKILL if it still runs, and starts another on the same store.
  void restart(std::vector<std::string> environment = {}, bool same_port = false);

 private:
  void start();

  GatewayOptions options_;
  std::unique_ptr<Process> process_;
  std::string address_;
  std::string admin_;
};

struct KeyCounts {
  int effects = 0;
  int arrivals = 0;
  std::vector<std::string> fences{};
};

struct LedgerCounts {
  int effects = 0;
  int arrivals = 0;
  std::map<std::string, KeyCounts> keys{};
};

/// A running examples/provider: the upstream that counts what really happened.
class Provider {
 public:
  explicit Provider(const std::string& listen = "127.0.0.1:0",
                    const std::vector<std::string>& flags = {});

  bool running() const { return !address_.empty(); }
  const std::string& address() const { return address_; }

  LedgerCounts ledger() const;
  KeyCounts of_key(std::string_view key) const;
  int effects(std::string_view key) const { return of_key(key).effects; }
  /// Waits until that many requests are in hold `name`; false when they did not come.
  bool wait_held(std::string_view name, int count) const;
  void release(std::string_view name) const;
  /// These faults for the next requests whose path begins so, through whomever they come.
  void arm(std::string_view faults, int count = 1, std::string_view path = {}) const;
  /// These faults for each charging request, with this chance.
  void arm_by_chance(std::string_view faults, double chance, unsigned seed) const;
  /// How it answers queries from now on: "status=503", "shown-after=1500".
  void queries(std::string_view how) const;

 private:
  Process process_;
  std::string address_;
};

}  // namespace idem::test

/// Skips loudly when the gateway was not built; fails under IDEM_REQUIRE_LIVE=1.
#define IDEM_NEED_PROGRAM(name)                                                         \
  if (!std::filesystem::exists(::idem::test::built_program(name))) {                    \
    if (::idem::test::required("IDEM_REQUIRE_LIVE")) FAIL() << name << " is not built"; \
    GTEST_SKIP() << name << " is not built: " << ::idem::test::built_program(name);     \
  }                                                                                     \
  static_assert(true)
