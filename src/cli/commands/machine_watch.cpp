#include "cli/commands/machine_watch.hpp"

#include "cli/process/surroundings.hpp"
#include "cli/settings/gateway_options.hpp"
#include "cli/settings/paths.hpp"
#include "core/record/find_journals.hpp"
#include "core/record/store_clock.hpp"
#include "store/known_kinds.hpp"

#include <idem/store_wait.hpp>

namespace idem::cli {
namespace {

// A disk to which 100 MiB a second are written lasts ten of these from the mark on.
constexpr Millis interval = std::chrono::seconds(1);
constexpr int turns_between_clocks = 10;
// A disk about the mark is not a line each time.
constexpr std::uint64_t disk_is_enough = disk_is_low + disk_is_low / 8;

using Clock = metrics::Registry::Clock;

using Answer = std::expected<ReadLines::Reply, StoreError>;

// The first line of a short journal costs a store the least, and comes with its time.
ReadLines question() { return {std::string(find_notes), 0, 1}; }

void keep_difference(Clock& clock, StoreTime before, const Answer& answer) {
  if (answer) clock.ahead = clock_ahead(before, answer->now, wall_time()).count();
}

}  // namespace

MachineWatch::MachineWatch(const GatewayOptions& options, Store& store, LogSink log,
                           metrics::Registry& registry)
    : store_(store), log_(std::move(log)), clock_(registry.clock()) {
  if (const auto path = path_in(options.store)) {
    disks_.push_back({folder_of(*path), "when it is full, the store ends the process",
                      registry.add_disk("store")});
  }
  disks_.push_back({options.spill_dir, "when it is full, large bodies are refused",
                    registry.add_disk("uploads")});
  const StoreTime before = wall_time();
  keep_difference(*clock_, before, ask_and_wait(store_, question()));
  look();
  runner_ = std::make_unique<workers::Runner>(std::vector<workers::RunOnce>{[this] {
                                                look();
                                                return false;
                                              }},
                                              interval);
}

void MachineWatch::look() {
  for (Disk& disk : disks_) look_at(disk);
  look_at_clock();
  if (++turns_ % turns_between_clocks == 0) ask_for_clock();
}

void MachineWatch::look_at(Disk& disk) const {
  const auto facts = disk_facts_of(disk.folder);
  if (!facts) return;
  disk.seen.free_bytes = static_cast<std::int64_t>(facts->free_bytes);
  const bool was_low = disk.is_low;
  disk.is_low = facts->free_bytes < (was_low ? disk_is_enough : disk_is_low);
  if (disk.is_low == was_low) return;
  const LogField of{"of", disk.seen.of};
  const LogField folder{"folder", disk.folder};
  const LogField free{"free_bytes", facts->free_bytes};
  if (was_low) return log_(LogLevel::info, "disk_recovered", {of, folder, free});
  log_(LogLevel::warning, "disk_low", {of, folder, free, {"detail", disk.when_full}});
}

// Waits for nothing: the next turn uses the answer.
void MachineWatch::ask_for_clock() {
  ask(store_, question(), [clock = clock_, before = wall_time()](const Answer& answer) {
    keep_difference(*clock, before, answer);
  });
}

void MachineWatch::look_at_clock() {
  clock_->is_synchronised = is_clock_synchronised();
  clock_->was_seen = true;
  note_clock(is_unsynchronised_, "kernel", why_clock_is_off(clock_->is_synchronised, {}));
  const Millis::rep ahead = clock_->ahead;
  if (ahead == Clock::not_known) return;
  note_clock(differs_from_store_, "store", why_clock_is_off(true, Millis(ahead)));
}

void MachineWatch::note_clock(bool& is_off, std::string_view of,
                              const std::optional<std::string>& why) const {
  if (why.has_value() == is_off) return;
  is_off = why.has_value();
  const LogField by{"of", std::string(of)};
  if (!why) return log_(LogLevel::info, "clock_recovered", {by});
  log_(LogLevel::warning, "clock_off", {by, {"reason", *why}});
}

}  // namespace idem::cli
