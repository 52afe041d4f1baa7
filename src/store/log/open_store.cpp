#include "store/log/open_store.hpp"

#include "core/naming/copied_identity.hpp"
#include "core/record/stored_record_codec.hpp"
#include "core/record/which_store.hpp"
#include "core/transitions/transitions.hpp"
#include "store/log/keys.hpp"
#include "store/log/making.hpp"
#include "store/log/meta.hpp"

#include <idem/fingerprint.hpp>

#include <fmt/format.h>

#include <filesystem>

namespace idem::segments {
namespace {

std::unexpected<StoreError> refused(const std::string& path, const std::string& why) {
  return std::unexpected(StoreError{StoreError::Code::refused, path + ": " + why});
}

GenerationCensus take_census(RunningSection& running, SlotTable& slots, StoreTime now) {
  GenerationCensus census;
  const auto add = [&](const Record* record) {
    if (record != nullptr && !transitions::is_live(*record, now)) return true;
    census.empty = false;
    if (record == nullptr) {
      census.complete = false;
    } else {
      census.generations.insert(record->generation);
    }
    return true;
  };
  slots.visit(add);
  running.visit([&](const embedded::RunningCells::Found& found) {
    const auto record = decode_record(found.id, found.record);
    add(record ? &*record : nullptr);
  });
  return census;
}

/// What the start decides about the store's identity; the error is a sentence.
struct Settled {
  StoreIdentity recorded;
  Identity identity;
  OpenedStore which;
};
std::expected<Settled, std::string> settle(std::optional<StoreIdentity> found,
                                           const IdentitySettings& settings,
                                           const LogOptions& options,
                                           const std::function<GenerationCensus()>& census) {
  const bool is_new = !found;
  if (auto why = why_not(options.which, is_new ? std::nullopt : std::optional(found->store_id))) {
    return std::unexpected(std::move(*why));
  }
  Settled settled;
  if (found) settled.recorded = std::move(*found);
  if (is_new) random_bytes(settled.recorded.store_id);
  settled.which = {.id = store_id_text(settled.recorded.store_id), .is_new = is_new};
  if (options.as_recorded && !is_new) return settled;
  auto recorded = is_new ? std::nullopt : std::optional(settled.recorded.recorded);
  auto identity = settle_identity(recorded, settings, census, options.which);
  if (!identity) return std::unexpected(std::move(identity.error()));
  settled.recorded.recorded = std::move(*recorded);
  settled.recorded.naming.generation = settled.recorded.recorded.generation;
  (void)settle_naming(options.which, settled.recorded.naming);
  settled.identity = std::move(*identity);
  return settled;
}

}  // namespace

std::expected<OpenedStoreParts, StoreError> open_store(const std::string& path,
                                                       const IdentitySettings& settings,
                                                       const LogOptions& options) {
  if (path.empty()) return refused("embedded:", "the store's path is empty");
  const std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  if (const auto why = why_not(options.which, std::nullopt); why && !has_store(absolute)) {
    return refused(absolute, *why);
  }
  auto running = std::make_unique<RunningSection>();
  auto opened = Database::open({.path = absolute, .sizes = options.sizes}, *running);
  if (!opened) return std::unexpected(std::move(opened.error()));
  std::unique_ptr<Database> db = std::move(*opened);
  Meta meta(*db);
  auto found = meta.identity();
  const auto fences = meta.number(meta_fences);
  const auto open = meta.number(meta_open);
  const auto mark = meta.clock_mark();
  std::string damage;
  const auto note = [&](const auto& value) {
    if (!value && damage.empty()) damage = value.error();
  };
  note(found);
  note(fences);
  note(open);
  note(mark);
  if (!damage.empty()) {
    return refused(absolute, "is damaged: " + damage +
                                 ". Every key could run again, so it is not opened and nothing was "
                                 "changed: bring back a copy of the store");
  }
  auto slots = make_slot_table(*db);
  if (!slots) return refused(absolute, "is damaged: " + slots.error());
  StoreClock clock(options.host ? *options.host : this_host(), *mark);
  const auto census = [&] { return take_census(*running, **slots, clock.now()); };
  auto settled = settle(std::move(*found), settings, options, census);
  if (!settled) return refused(absolute, settled.error());
  settled->which.place = absolute;
  settled->recorded.naming.by_operation = settings.key_scope == "operation";
  meta.put_identity(settled->recorded);
  meta.put_clock_mark(clock.mark());
  meta.put_number(meta_open, 1);
  Fence highest = fences->value_or(0);
  if (options.restored) {
    highest += transitions::restored_fence_gap;
    meta.put_number(meta_fences, highest);
    db->remove(Family::meta, meta_copied_at);
  }
  db->commit();
  const bool is_snapshot = options.which.copied && options.which.copied->is_snapshot;
  if (options.opened) options.opened(settled->which);
  return OpenedStoreParts{std::move(db),
                          std::move(running),
                          std::move(*slots),
                          std::move(settled->identity),
                          std::move(settled->recorded.naming),
                          std::move(clock),
                          highest,
                          open->value_or(0) != 0 && !is_snapshot,
                          options.restored};
}

}  // namespace idem::segments
