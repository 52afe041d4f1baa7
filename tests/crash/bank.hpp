#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "support/json.hpp"
#include "support/live.hpp"
#include "support/shared_store.hpp"

namespace idem::test {

struct BankOptions {
  std::string store = "sqlite";  ///< Or "postgres", which a worker can share.
  bool is_asked = true;
  bool sends_events = true;
  bool gateway_reconciles = true;  ///< Else only a worker does, if there is one.
  std::chrono::milliseconds grace{200};
  std::chrono::milliseconds lease{2'000};
  std::chrono::milliseconds retry_first{100};
  std::chrono::milliseconds retry_max{400};
  int attempts = 1'000;
};

/// A bank that can be asked and tells by itself what became of a charge, a gateway in front of it
/// that settles its unknown records by that, and a worker beside it. The bank lives as long as
/// this; gateway and worker die, and are started again on the same store. The gateway keeps its
/// address, at which the bank tells.
class Bank {
 public:
  explicit Bank(BankOptions options);

  bool running() const { return provider_->running() && gateway_->running(); }
  const Provider& provider() const { return *provider_; }
  Gateway& gateway() { return *gateway_; }
  /// Kills what is left of the gateway first.
  void restart_gateway(std::vector<std::string> environment = {});

  /// Kills what is left of an earlier one first.
  void start_worker(std::vector<std::string> environment = {});
  Process& worker() { return *worker_; }

  Response ask(const Request& request) const { return send_once(gateway_->address(), request); }
  /// GET at the gateway's admin API.
  Json read(const std::string& target) const;
  /// The record of a key in a listing; its ref is empty where there is none.
  Json listed(const std::string& key) const;
  /// With its evidence.
  Json record(const std::string& key) const {
    return read("/v1/keys/" + listed(key)["ref"].string);
  }
  /// Polls until nothing is under way or unknown any more, and no event on its way; false when that
  /// did not come in time.
  bool wait_until_settled(std::chrono::milliseconds at_most = patience) const;

  /// The bank's own account: a line for each charge.
  std::vector<Json> exported() const;
  /// `idem reconcile` of that with our records: its report, and null where it found none.
  Json compared() const;

 private:
  std::string config(bool reconciles, const std::string& more) const;
  bool is_quiet() const;

  BankOptions options_;
  TempDir dir_;
  std::unique_ptr<SharedStoreUrl> shared_;
  std::string secret_;
  std::unique_ptr<Provider> provider_;
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<Process> worker_;
};

}  // namespace idem::test
