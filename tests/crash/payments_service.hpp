#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>

#include "support/json.hpp"
#include "support/live.hpp"
#include "support/shared_store.hpp"

namespace idem::test {

/// examples/payments with its provider, on "sqlite" or "postgres". The provider lives as long as
/// this, the service dies and is started again on the same store.
class PaymentsService {
 public:
  /// `provider_is`: as its flag has it. The provider deduplicates exactly where that says so.
  PaymentsService(const std::string& store, std::string provider_is);

  /// With a completer and a relay, unless `dies_at` says where it is to be killed: then without
  /// completer, and with a relay only where `relays`.
  void start(const std::string& dies_at = {}, bool relays = true);
  void stop();
  Process& process() { return *process_; }
  const std::string& address() const { return address_; }
  const Provider& provider() const { return provider_; }

  static Request payment(const std::string& key, int amount = 700);
  Response ask(const Request& request) const { return send_once(address_, request); }

  /// How many charges the provider made for each key that it was given.
  std::map<std::string, int> charges() const;
  Json inbox() const;
  /// Waits until the inbox has so many receipts; false when they did not come.
  bool wait_for_receipts(std::size_t count) const;
  /// Stops it, and starts it again for as long as there are messages that are not delivered; false
  /// when they never were.
  bool stop_when_all_is_delivered();
  /// How many records are in a state, or messages: `SELECT count(*) FROM ...`. SQLite: only while
  /// the service does not run.
  int count(const std::string& sqlite, const std::string& postgres) const;

 private:
  bool wait_until(const std::function<bool(const Json& inbox)>& there,
                  std::chrono::milliseconds at_most = patience) const;

  TempDir dir_;
  std::unique_ptr<SharedStoreUrl> shared_;
  std::string provider_is_;
  std::string secret_file_;
  Provider provider_;
  std::unique_ptr<Process> process_;
  std::string address_;
};

}  // namespace idem::test
