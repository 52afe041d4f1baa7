#pragma once

#include "metrics/registry.hpp"
#include "workers/runner.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::cli {

struct GatewayOptions;

/// Looks at the disks and at the clock of this machine, at the start and then at intervals: a line
/// when one is about to fail and when it is right again, and the numbers for the metrics. A thread
/// of its own: a question about a disk that hangs does not come back.
class MachineWatch {
 public:
  /// Has looked when it returns, also at how far the clock of `store` is from this machine's.
  MachineWatch(const GatewayOptions& options, Store& store, LogSink log,
               metrics::Registry& registry);

 private:
  struct Disk {
    std::string folder;
    std::string when_full;  ///< A sentence part.
    metrics::Registry::Disk& seen;
    bool is_low = false;
  };
  void look();
  void look_at(Disk& disk) const;
  void look_at_clock();
  void note_clock(bool& is_off, std::string_view of, const std::optional<std::string>& why) const;
  void ask_for_clock();

  Store& store_;
  const LogSink log_;
  /// A late answer of the store's still writes it.
  const std::shared_ptr<metrics::Registry::Clock> clock_;
  std::vector<Disk> disks_;
  bool is_unsynchronised_ = false;
  bool differs_from_store_ = false;
  int turns_ = 0;
  std::unique_ptr<workers::Runner> runner_;
};

}  // namespace idem::cli
