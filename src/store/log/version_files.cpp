#include "store/log/version_files.hpp"

#include "store/file_access.hpp"
#include "store/log/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <utility>

namespace idem::segments {
namespace {

/// Versions are written to their file once there are so many bytes of them.
constexpr std::size_t gathered_max = 256UL << 10U;
/// The kernel begins to write a file to the disk for each so many bytes.
constexpr std::uint64_t versions_start_bytes = 256UL << 10U;

constexpr std::string_view versions_suffix = ".records";

std::uint64_t offset_of(std::uint64_t place) { return place & 0xffffffffU; }

}  // namespace

std::string version_path(const std::string& folder, std::uint32_t file) {
  return NumberedFiles(folder, std::string(versions_suffix)).path_of(file);
}

VersionFiles::VersionFiles(std::string folder, const LogSizes& sizes, Background& background)
    : files_(std::move(folder), std::string(versions_suffix)),
      file_bytes_(sizes.segment_bytes),
      background_(background) {
  files_.keep_open_at_most(static_cast<int>(sizes.open_files / 3));
}

std::expected<void, std::string> VersionFiles::look(Holding holding) {
  is_look_ = true;
  // A start makes a missing folder anew, and both miss what should be in it.
  std::error_code code;
  const auto state = std::filesystem::status(files_.folder(), code);
  if (state.type() == std::filesystem::file_type::not_found) return {};
  return files_.look(holding);
}

// Of what a look has in memory, the parts of deleted files have no present version.
std::vector<std::uint32_t> VersionFiles::files() const {
  std::vector<std::uint32_t> files = files_.numbers();
  std::erase_if(files, [this](std::uint32_t file) { return is_look_ && file > current_; });
  for (const auto& [place, bytes] : beside_) {
    if (files.empty() || file_of(place) > files.back()) files.push_back(file_of(place));
  }
  return files;
}

void VersionFiles::go_on_at(std::uint64_t place) {
  current_ = file_of(place);
  end_ = offset_of(place);
}

std::uint64_t VersionFiles::next() const noexcept {
  const bool is_full = current_ == 0 || end_ >= file_bytes_;
  return is_full ? std::uint64_t{current_ + 1} << 32U : std::uint64_t{current_} << 32U | end_;
}

void VersionFiles::append(std::string_view versions, std::uint64_t commit) {
  last_commit_ = commit;
  if (versions.empty()) return;
  const std::uint64_t place = next();
  if (file_of(place) != current_) {
    write_gathered();
    current_ = file_of(place);
    started_to_ = 0;
  }
  if (!files_.has(current_)) files_.make(current_);
  gathered_ += versions;
  end_ = offset_of(place) + versions.size();
  if (gathered_.size() >= gathered_max) write_gathered();
}

void VersionFiles::write_gathered() {
  if (gathered_.empty()) return;
  write(current_, end_ - gathered_.size(), gathered_);
  gathered_.clear();
  if (end_ - std::min(end_, started_to_) >= versions_start_bytes) start_writing();
}

/// So that a sync finds little left: a large one would make commits wait.
void VersionFiles::start_writing() {
  if (is_starting_.exchange(true)) return;  // The next one has it, too: descriptors are few.
  const auto from = static_cast<off_t>(started_to_);
  const auto bytes = static_cast<off_t>(end_ - started_to_);
  started_to_ = end_;
  OwnFile own(::fcntl(files_.file(current_), F_DUPFD_CLOEXEC, 0));
  if (own.get() < 0) {
    is_starting_ = false;
    return;  // sync_later() finds more left.
  }
  background_.post([this, file = std::move(own), from, bytes] {
    (void)::sync_file_range(file.get(), from, bytes,
                            SYNC_FILE_RANGE_WRITE);  // sync_later() counts.
    is_starting_ = false;
  });
}

bool VersionFiles::write_again(std::uint64_t place, std::string_view versions) {
  if (versions.empty()) return true;
  const std::uint32_t file = file_of(place);
  // Those before the last are deleted once nothing is in them; the last may not have been made.
  const bool is_new = !files_.has(file) && (files_.is_empty() || file > files_.last());
  const auto from = beside_.lower_bound(std::uint64_t{file} << 32U);
  const bool is_begun = from != beside_.end() && file_of(from->first) == file;
  const bool had_more = is_new && !is_begun && offset_of(place) > 0;
  if (is_look_) {
    std::string found;
    const bool has = read_at(files_.file(file), offset_of(place), versions.size(), found);
    if (!has || found != versions) beside_.insert_or_assign(place, versions);
    return !had_more;
  }
  if (had_more) return false;
  if (is_new) files_.make(file);
  if (files_.has(file)) write(file, offset_of(place), versions);
  return true;
}

void VersionFiles::write(std::uint32_t number, std::uint64_t offset, std::string_view bytes) {
  const int file = files_.file(number);
  if (file < 0) files_.fail_closed("opening a file");
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) files_.fail_closed("write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  if (std::ranges::find(unsynced_, number) == unsynced_.end()) unsynced_.push_back(number);
}

bool VersionFiles::read(std::uint64_t place, std::size_t size, std::string& into) {
  const std::uint64_t offset = offset_of(place);
  if (is_look_) return read_beside(place, size, into);
  const std::uint64_t gathered_at = end_ - gathered_.size();
  if (file_of(place) == current_ && offset >= gathered_at && !gathered_.empty()) {
    if (offset + size > end_) return false;
    into.assign(gathered_, offset - gathered_at, size);
    return true;
  }
  const int file = files_.file(file_of(place));
  return file >= 0 && read_at(file, offset, size, into);
}

std::optional<std::string> VersionFiles::why_not_opened(const std::string& store,
                                                        std::uint64_t place) {
  const std::uint32_t number = file_of(place);
  if (!files_.has(number) || files_.file(number) >= 0 || !is_about_access(errno)) {
    return std::nullopt;
  }
  return part_failure(store, files_.path_of(number), "cannot be opened", errno);
}

/// A part of the file, and over it what is in memory.
bool VersionFiles::read_beside(std::uint64_t place, std::size_t size, std::string& into) {
  const std::uint32_t file = file_of(place);
  const std::uint64_t in_file = size_of(file);
  if (offset_of(place) + size > end_of(file)) return false;
  const std::uint64_t offset = offset_of(place);
  const std::size_t there = offset >= in_file ? 0 : std::min<std::uint64_t>(size, in_file - offset);
  if (!read_at(files_.file(file), offset, there, into)) return false;
  into.resize(size);
  auto at = beside_.upper_bound(place);
  if (at != beside_.begin()) --at;
  for (; at != beside_.end() && at->first < place + size; ++at) {
    const auto& [from, bytes] = *at;
    const std::uint64_t begin = std::max(from, place);
    const std::uint64_t end = std::min(from + bytes.size(), place + size);
    if (begin < end) into.replace(begin - place, end - begin, bytes, begin - from, end - begin);
  }
  return true;
}

void VersionFiles::drop(std::uint32_t file) {
  background_.post([last = OwnFile(files_.unlink(file))] {});
}

std::uint64_t VersionFiles::end_of(std::uint32_t file) const {
  // Of the current one, what its process wrote since the look is not a part of it.
  if (file >= current_) return file == current_ ? end_ : 0;
  const std::uint64_t end = size_of(file);
  const auto behind = beside_.lower_bound(std::uint64_t{file + 1} << 32U);
  if (behind == beside_.begin()) return end;
  const auto& [place, bytes] = *std::prev(behind);
  return file_of(place) == file ? std::max(end, offset_of(place) + bytes.size()) : end;
}

bool VersionFiles::goes_beyond_its_end() const {
  return !files_.is_empty() && (files_.last() > current_ || files_.size_of(current_) > end_);
}

std::uint64_t VersionFiles::size_of(std::uint32_t file) const { return files_.size_of(file); }

void VersionFiles::sync_later() {
  write_gathered();
  std::vector<OwnFile> to_sync;
  for (const std::uint32_t number : std::exchange(unsynced_, {})) {
    const int file = files_.file(number);
    if (file >= 0) to_sync.push_back(duplicate(file));  // Else it was deleted since, as empty.
  }
  background_.post([this, to = last_commit_, files = std::move(to_sync)] {
    for (const OwnFile& file : files) {
      if (::fdatasync(file.get()) != 0) files_.fail_closed("sync");
    }
    synced_to_.store(to, std::memory_order_release);
  });
}

OwnFile VersionFiles::duplicate(int file) const {
  const int own = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (own < 0) files_.fail_closed("opening a file");
  return OwnFile(own);
}

}  // namespace idem::segments
