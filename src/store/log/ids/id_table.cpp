#include "store/log/ids/id_table.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "store/folder.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

namespace idem::segments {
namespace {

constexpr std::uint64_t manifest_magic = 0x32736e75'72736469;  // "idsruns2"
constexpr std::string_view run_suffix = ".ids";
constexpr std::size_t run_bytes = sizeof(std::uint32_t) + sizeof(std::uint64_t);  ///< In its list.
/// Full ones that wait for their file; a commit that would make one more waits.
constexpr std::size_t full_max = 3;
/// Between two looks for what is more urgent than a merge.
constexpr std::size_t entries_a_step = 1UL << 15U;
constexpr std::size_t all_entries = std::numeric_limits<std::size_t>::max();

/// While its folder is not at its path.
constexpr std::chrono::milliseconds looks_each{100};
/// Free disk that a merge leaves for what a commit needs.
constexpr std::uint64_t left_by_merges = 256UL << 20U;
/// With its part of a filter and of a page's end.
constexpr std::uint64_t merged_entry_bytes = 32;
constexpr std::size_t ids_copied_at_once = 4'096;

constexpr std::string_view page_is_damaged = "the page that says where it is is damaged";

template <class Range, class Value>
bool contains(const Range& range, const Value& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

/// The id behind it; none: it is the last one.
std::optional<RecordId> successor(RecordId id) {
  for (std::size_t i = id.bytes.size(); i-- > 0;) {
    if (++id.bytes[i] != 0) return id;
  }
  return std::nullopt;
}

/// A part of a memtable, or of a run: as sources of a slice.
class Part {
 public:
  Part(const Memtable& table, const RecordId& from, std::size_t most)
      : entries_(table.sorted(from, most)), is_cut_(entries_.size() == most) {}
  Part(std::shared_ptr<const SortedRun> run, const RecordId& from)
      : cursor_(std::in_place, std::move(run), from, 1, true) {}

  bool is_at_end() const noexcept {
    return cursor_ ? cursor_->is_at_end() : at_ == entries_.size();
  }
  const IdEntry& entry() const noexcept { return cursor_ ? cursor_->entry() : entries_[at_]; }
  void advance() {
    if (cursor_) {
      cursor_->advance();
    } else {
      ++at_;
    }
  }
  /// There may be more behind its end.
  bool is_cut() const noexcept { return is_cut_ && at_ == entries_.size(); }
  bool has_damage() const noexcept { return cursor_ && cursor_->has_damage(); }

 private:
  std::vector<IdEntry> entries_;
  std::size_t at_ = 0;
  bool is_cut_ = false;
  std::optional<SortedRun::Cursor> cursor_;
};

}  // namespace

IdTable::IdTable(std::string folder, Sizes sizes)
    : folder_(std::move(folder)),
      sizes_(sizes),
      memtable_(std::make_shared<Memtable>(sizes.memtable_entries)),
      live_(std::numeric_limits<std::uint64_t>::max() / 4) {}

IdTable::~IdTable() = default;

std::string IdTable::path_of(std::uint32_t number) const {
  return fmt::format("{}/{:08}{}", folder_, number, run_suffix);
}

std::expected<void, std::string> IdTable::open(const StoreTag& tag) {
  tag_ = tag;
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) {
    return std::unexpected(fmt::format("{} cannot be made: {}", folder_, std::strerror(errno)));
  }
  if (auto found = read_manifest(); !found) return found;
  newest_ = runs_ = std::make_shared<Runs>(present_);
  in_use_ = embedded::PathInUse(folder_);
  return {};
}

void IdTable::start() {
  // Before the first run: a run without a list is a list that is lost.
  if (!has_list_ && !write_manifest(present_)) fail_closed(folder_, "writing the list of runs");
  delete_others(present_);
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

void IdTable::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

std::expected<void, std::string> IdTable::look(const StoreTag& tag) {
  tag_ = tag;
  is_look_ = true;
  if (auto found = read_manifest(); !found) return found;
  runs_ = std::make_shared<Runs>(present_);
  return {};
}

std::expected<void, std::string> IdTable::read_manifest() {
  const std::string path = folder_ + "/runs";
  std::error_code code;
  const auto state = std::filesystem::status(path, code);
  if (state.type() == std::filesystem::file_type::not_found) {
    // The log has all then, or is found too short.
    for (const std::string& name : names_in(folder_, code)) {
      if (name.ends_with(run_suffix)) return std::unexpected(path + " is missing");
    }
    if (!code || code == std::errc::no_such_file_or_directory) return {};
    return std::unexpected(folder_ + " cannot be read: " + code.message());
  }
  has_list_ = true;
  const auto bytes = whole_file(path);
  if (!bytes) return std::unexpected(path + " cannot be read: " + std::strerror(errno));
  const auto sound = without_checksum(RecordId{tag_}, *bytes);
  if (!sound) return std::unexpected(path + " is damaged, or of another store");
  ByteReader in(*sound);
  const auto magic = in.number<std::uint64_t>();
  present_.saved_to = in.number<std::uint64_t>();
  last_number_ = in.number<std::uint32_t>();
  const auto count = in.number<std::uint32_t>();
  if (magic != manifest_magic) return std::unexpected(path + " has another format");
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto number = in.number<std::uint32_t>();
    const auto tag = in.number<std::uint64_t>();
    auto run = SortedRun::open(path_of(number), number, false);
    if (!run) return std::unexpected(std::move(run.error()));
    if ((*run)->tag() != tag) return std::unexpected(path_of(number) + " is another table's");
    present_.runs.push_back(std::move(*run));
  }
  if (in.is_cut_short()) return std::unexpected(path + " is damaged");
  last_commit_ = present_.saved_to;
  while (const auto run = next_without_filter()) {
    const std::uint32_t number = present_.runs[*run]->number();
    if (!load_filter(*run)) without_filter_.push_back(number);  // It is read instead.
  }
  return {};
}

bool IdTable::write_manifest(const Runs& runs) const {
  constexpr std::size_t head = 2 * sizeof(std::uint64_t) + 2 * sizeof(std::uint32_t);
  std::string bytes(head + runs.runs.size() * run_bytes, '\0');
  ByteWriter out(bytes.data());
  out.number(manifest_magic);
  out.number(runs.saved_to);
  out.number(last_number_);
  out.number(static_cast<std::uint32_t>(runs.runs.size()));
  for (const auto& run : runs.runs) {
    out.number(run->number());
    out.number(run->tag());
  }
  append_checksum(RecordId{tag_}, bytes);
  return write_whole(folder_, folder_ + "/runs", bytes);
}

/// Files that a crash left, of which no start will know.
void IdTable::delete_others(const Runs& runs) const {
  std::error_code code;
  for (const std::string& name : names_in(folder_, code)) {
    const std::string path = folder_ + "/" + name;
    const auto is_this = [&](const auto& run) { return path_of(run->number()) == path; };
    if (path.ends_with(run_suffix) && std::ranges::none_of(runs.runs, is_this)) {
      std::filesystem::remove(path, code);
    }
  }
}

std::expected<IdEntry, std::string_view> IdTable::find(const RecordId& id) const {
  if (const IdEntry* const entry = memtable_->find(id)) return *entry;
  for (auto full = full_.rbegin(); full != full_.rend(); ++full) {
    if (const IdEntry* const entry = full->table->find(id)) return *entry;
  }
  for (const auto& run : runs_->runs) run->prefetch(id);
  IdEntry entry{.id = id};
  for (const auto& run : runs_->runs) {
    if (!run->may_have(id)) continue;
    const auto found = run->find(id, entry);
    if (found == SortedRun::Found::yes) return entry;
    if (found == SortedRun::Found::damaged) return std::unexpected(page_is_damaged);
  }
  return IdEntry{.id = id};
}

void IdTable::apply(std::span<const IdEntry> entries, std::uint64_t commit) {
  look_for_runs();
  for (const IdEntry& entry : entries) memtable_->put(entry);
  last_commit_ = commit;
  if (memtable_->size() >= sizes_.memtable_entries && !is_look_) save_later();
}

void IdTable::save_later() {
  if (last_commit_ <= (full_.empty() ? runs_->saved_to : full_.back().to)) return;
  while (full_.size() >= full_max && thread_.joinable()) {
    std::unique_lock lock(mutex_);
    progress_.wait(lock, [this] { return installed_.load() != seen_; });
    lock.unlock();
    look_for_runs();
  }
  full_.push_back({std::exchange(memtable_, next_memtable()), last_commit_});
  {
    const std::lock_guard lock(mutex_);
    to_write_.push_back(full_.back());
  }
  wake_.notify_one();
}

std::shared_ptr<Memtable> IdTable::next_memtable() {
  {
    const std::lock_guard lock(mutex_);
    if (spare_) return std::exchange(spare_, nullptr);
  }
  return std::make_shared<Memtable>(sizes_.memtable_entries);
}

void IdTable::save() {
  if (!what_is_lost().empty()) return;
  save_later();
  while (runs_->saved_to < last_commit_) {
    std::unique_lock lock(mutex_);
    progress_.wait(lock, [this] { return installed_.load() != seen_; });
    lock.unlock();
    look_for_runs();
  }
}

/// Goes on with what its thread has written since.
void IdTable::look_for_runs() {
  if (installed_.load(std::memory_order_acquire) == seen_) return;
  {
    const std::lock_guard lock(mutex_);
    seen_ = installed_.load();
    unused_.push_back(std::exchange(runs_, newest_));
    for (; !full_.empty() && full_.front().to <= runs_->saved_to; full_.pop_front()) {
      unused_.push_back(std::move(full_.front().table));
    }
  }
  wake_.notify_one();
}

std::expected<void, std::string> IdTable::copy_to(const std::string& folder) const {
  const auto failed = [&](int code) {
    return std::unexpected(fmt::format("{} cannot be written: {}", folder, std::strerror(code)));
  };
  if (::mkdir(folder.c_str(), 0700) != 0) return failed(errno);
  IdTable to(folder, sizes_);
  to.tag_ = tag_;
  std::uint64_t entries = memtable_->size();
  for (const auto& run : runs_->runs) entries += run->entries();
  Runs runs{.runs = {}, .saved_to = last_commit_};
  SortedRunWriter out(to.path_of(1), 1, entries);
  std::optional<RecordId> after;
  do {
    const Slice some = slice(after, ids_copied_at_once);
    if (some.has_damage) return std::unexpected(folder_ + " has a damaged page");
    for (const IdEntry& entry : some.entries) out.append(entry);
    after = some.after;
  } while (after);
  if (const int code = out.finish(); code != 0) return failed(code);
  auto run = SortedRun::open(to.path_of(1), 1, false);
  if (!run) return std::unexpected(std::move(run.error()));
  to.last_number_ = 1;
  runs.runs.push_back(std::move(*run));
  if (!to.write_manifest(runs)) return failed(errno);
  return {};
}

IdTable::Slice IdTable::slice(const std::optional<RecordId>& after, std::size_t most) const {
  const auto from = after ? successor(*after) : RecordId{};
  if (!from) return {};
  std::vector<Part> parts;
  parts.emplace_back(*memtable_, *from, most);
  for (auto full = full_.rbegin(); full != full_.rend(); ++full) {
    parts.emplace_back(*full->table, *from, most);
  }
  for (const auto& run : runs_->runs) parts.emplace_back(run, *from);
  Slice slice;
  while (const Part* const least = least_of(parts)) {
    const IdEntry entry = least->entry();
    if (!entry.is_gone()) slice.entries.push_back(entry);
    pass(parts, entry.id);
    const auto is_cut = [](const Part& part) { return part.is_cut(); };
    if (slice.entries.size() < most && std::ranges::none_of(parts, is_cut)) continue;
    slice.after = entry.id;
    break;
  }
  slice.has_damage = std::ranges::any_of(parts, [](const Part& part) { return part.has_damage(); });
  return slice;
}

bool IdTable::has_work() const {
  return !spare_ || !to_write_.empty() || !unused_.empty() || !merges_.empty() ||
         next_without_filter() || next_merge();
}

void IdTable::serve(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "idem-ids");
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return has_work(); })) {
    if (stop.stop_requested()) return;
    // A folder that was moved away is not written to: another store may be at its path.
    if (!in_use_.what_is_wrong().empty()) {
      (void)wake_.wait_for(lock, stop, looks_each, [] { return false; });
      continue;
    }
    auto unused = std::exchange(unused_, {});
    const bool has_spare = spare_ != nullptr;
    std::optional<Full> full;
    if (!to_write_.empty()) {
      full = std::move(to_write_.front());
      to_write_.pop_front();
    }
    lock.unlock();
    unused.clear();
    if (!has_spare) make_spare();
    std::erase_if(replaced_, [](const auto& one) { return one.expired(); });
    if (full) {
      write(*full);
    } else if (const auto run = next_without_filter()) {
      const std::uint32_t number = present_.runs[*run]->number();
      if (load_filter(*run)) {
        publish();
      } else {
        without_filter_.push_back(number);
      }
    } else {
      if (const auto plan = next_merge()) begin_merge(*plan);
      if (!merges_.empty()) step_merge();
    }
    lock.lock();
  }
}

void IdTable::make_spare() {
  auto spare = std::make_shared<Memtable>(sizes_.memtable_entries);
  const std::lock_guard lock(mutex_);
  spare_ = std::move(spare);
}

void IdTable::write(const Full& full) {
  Runs runs = present_;
  runs.saved_to = full.to;
  if (full.table->size() > 0) {
    const std::uint32_t number = ++last_number_;
    SortedRunWriter out(path_of(number), number, full.table->size());
    for (const IdEntry& entry : full.table->sorted({}, all_entries)) out.append(entry);
    errno = out.finish();
    auto run = errno == 0 ? open_run(number) : nullptr;
    if (!run) fail_closed(folder_, "writing a run");
    runs.runs.insert(runs.runs.begin(), std::move(run));
  }
  install(std::move(runs));
  may_merge_ = true;
}

std::optional<MergePlan> IdTable::next_merge() const {
  if (!may_merge_) return std::nullopt;
  std::vector<RunSize> sizes;
  for (const auto& run : present_.runs) {
    const auto has = [&](const auto& merge) { return contains(merge->runs(), run); };
    const bool is_free =
        std::ranges::none_of(merges_, has) && !contains(unmergeable_, run->number());
    sizes.push_back({run->entries(), is_free});
  }
  return plan_merge(sizes, sizes_.memtable_entries, live_.load(std::memory_order_relaxed));
}

void IdTable::begin_merge(const MergePlan& plan) {
  const auto from = present_.runs.begin() + static_cast<std::ptrdiff_t>(plan.first);
  const bool has_oldest = plan.first + plan.count == present_.runs.size();
  std::uint64_t bytes = left_by_merges;
  for (std::size_t i = 0; i < plan.count; ++i) {
    bytes += present_.runs[plan.first + i]->entries() * merged_entry_bytes;
  }
  struct statvfs disk{};
  if (::statvfs(folder_.c_str(), &disk) != 0 || disk.f_bavail * disk.f_frsize < bytes) {
    may_merge_ = false;  // Until once more is written.
    return;
  }
  const std::uint32_t number = ++last_number_;
  merges_.push_back(
      std::make_unique<Merge>(Merge::Runs(from, from + static_cast<std::ptrdiff_t>(plan.count)),
                              has_oldest, path_of(number), number));
}

void IdTable::step_merge() {
  Merge& merge = *merges_.back();
  const auto state = merge.step(entries_a_step);
  if (state == Merge::State::goes_on) return;
  auto merged = state == Merge::State::done ? open_run(merge.number()) : nullptr;
  const std::unique_ptr<Merge> ended = std::move(merges_.back());
  merges_.pop_back();
  if (merged) return replace(ended->runs(), std::move(merged));
  // Damage stays; room for the file there may be once more is written.
  ::unlink(merge.path().c_str());
  const auto damaged = merge.damaged();
  unmergeable_.insert(unmergeable_.end(), damaged.begin(), damaged.end());
  if (damaged.empty()) may_merge_ = false;
}

void IdTable::replace(const Merge::Runs& merged, std::shared_ptr<const SortedRun> by) {
  Runs runs = present_;
  const auto at = std::ranges::find(runs.runs, merged.front());
  const auto behind = runs.runs.erase(at, at + static_cast<std::ptrdiff_t>(merged.size()));
  if (by->entries() > 0) runs.runs.insert(behind, std::move(by));
  install(std::move(runs));
  for (const auto& run : merged) {
    replaced_.push_back(run);
    ::unlink(path_of(run->number()).c_str());
  }
}

/// Large ones leave some for the runs that are newer and so looked into first.
bool IdTable::has_room_for_filter(const SortedRun& run) const {
  std::size_t used = run.memory_bytes() + run.filter_bytes();
  for (const auto& other : present_.runs) used += other->memory_bytes();
  for (const auto& other : replaced_) {
    if (const auto alive = other.lock()) used += alive->memory_bytes();
  }
  const bool is_small = run.filter_bytes() <= sizes_.cache_bytes / 16;
  return used <= (is_small ? sizes_.cache_bytes : sizes_.cache_bytes / 4 * 3);
}

/// Null: what was written cannot be read.
std::shared_ptr<const SortedRun> IdTable::open_run(std::uint32_t number) const {
  auto run = SortedRun::open(path_of(number), number, false);
  if (!run) return nullptr;
  if (!has_room_for_filter(**run)) return std::move(*run);
  run = SortedRun::open(path_of(number), number, true);
  return run ? std::move(*run) : nullptr;
}

/// A run for whose filter there is room by now, the newest first.
std::optional<std::size_t> IdTable::next_without_filter() const {
  for (std::size_t i = 0; i < present_.runs.size(); ++i) {
    const auto& run = present_.runs[i];
    const auto has = [&](const auto& merge) { return contains(merge->runs(), run); };
    const bool waits = !run->has_filter() && std::ranges::none_of(merges_, has) &&
                       !contains(without_filter_, run->number());
    if (waits && has_room_for_filter(*run)) return i;
  }
  return std::nullopt;
}

std::expected<void, std::string> IdTable::load_filter(std::size_t at) {
  const auto before = present_.runs[at];
  auto run = SortedRun::open(path_of(before->number()), before->number(), true);
  if (!run) return std::unexpected(std::move(run.error()));
  present_.runs[at] = std::move(*run);
  replaced_.push_back(before);
  return {};
}

void IdTable::install(Runs runs) {
  sync_folder(folder_);
  if (!write_manifest(runs)) fail_closed(folder_, "writing the list of runs");
  present_ = std::move(runs);
  publish();
}

/// So that its user's thread goes on with them.
void IdTable::publish() {
  {
    const std::lock_guard lock(mutex_);
    unused_.push_back(std::exchange(newest_, std::make_shared<Runs>(present_)));
    installed_.fetch_add(1, std::memory_order_release);
  }
  progress_.notify_all();
}

}  // namespace idem::segments
