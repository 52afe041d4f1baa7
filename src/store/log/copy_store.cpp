#include "store/log/copy_store.hpp"

#include "store/embedded/room_on_disk.hpp"
#include "store/file_access.hpp"
#include "store/log/files.hpp"
#include "store/log/shards.hpp"

#include <idem/crash_point.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace idem::segments {
namespace {

constexpr std::size_t copied_bytes_at_once = 1UL << 20U;
constexpr std::uint64_t spare_bytes = 64UL << 20U;

std::unexpected<StoreFileError> copy_failure(const std::string& path, std::string_view why) {
  return std::unexpected(
      StoreFileError{StoreFileError::Kind::failed, fmt::format("{}: {}", path, why)});
}
std::unexpected<StoreFileError> cannot_write(const std::string& path) {
  return std::unexpected(
      StoreFileError{StoreFileError::Kind::failed, file_failure(path, "cannot be written", errno)});
}

/// The files of versions, with what its process had not written into them yet.
class CopyVersions {
 public:
  CopyVersions(Database& db, std::string to, const StoreFileProgress& progress)
      : db_(db), to_(std::move(to)), progress_(progress), files_(db.files_of_versions()) {
    for (const std::uint32_t file : files_) all_ += pages_of(db_.end_of_file(file));
  }

  std::expected<void, StoreFileError> copy() {
    if (::mkdir(to_.c_str(), 0700) != 0) return cannot_write(to_);
    for (const std::uint32_t file : files_) {
      const std::string path = version_path(to_, file);
      const int out = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      if (out < 0) return cannot_write(path);
      const auto copied = copy(file, out, path);
      const bool is_closed = ::close(out) == 0;
      if (!copied) return copied;
      if (!is_closed) return cannot_write(path);
    }
    return {};
  }

 private:
  static std::uint64_t pages_of(std::uint64_t bytes) { return (bytes + 4095) / 4096; }

  std::expected<void, StoreFileError> copy(std::uint32_t file, int out, const std::string& path) {
    const std::uint64_t end = db_.end_of_file(file);
    for (std::uint64_t at = 0; at < end;) {
      const std::size_t some = std::min<std::uint64_t>(copied_bytes_at_once, end - at);
      if (!db_.read_version(std::uint64_t{file} << 32U | at, some, bytes_)) {
        return copy_failure(db_.path(),
                            fmt::format("file {} of its versions cannot be read", file));
      }
      if (::write(out, bytes_.data(), some) != static_cast<ssize_t>(some)) {
        return cannot_write(path);
      }
      // So that the sync finds little left.
      (void)::sync_file_range(out, static_cast<off_t>(at), static_cast<off_t>(some),
                              SYNC_FILE_RANGE_WRITE);
      at += some;
      if (progress_) progress_(done_ + pages_of(at), all_);
      crash_point(CrashPoint::backup_begun);
    }
    done_ += pages_of(end);
    if (::fsync(out) != 0) return cannot_write(path);
    return {};
  }

  Database& db_;
  std::string to_;
  const StoreFileProgress& progress_;
  std::vector<std::uint32_t> files_;
  std::uint64_t all_ = 0;
  std::uint64_t done_ = 0;
  std::string bytes_;
};

std::expected<void, StoreFileError> copy_shard(Look& look, const std::string& to,
                                               std::optional<StoreTime> copied_at,
                                               const StoreFileProgress& progress) {
  if (::mkdir(to.c_str(), 0700) != 0) return cannot_write(to);
  if (auto done = look.db->copy_log_to(to); !done) return copy_failure(to, done.error());
  if (auto done = look.db->copy_mark_to(to); !done) return copy_failure(to, done.error());
  if (auto done = CopyVersions(*look.db, to + "/records", progress).copy(); !done) return done;
  if (auto done = look.db->ids().copy_to(to + "/ids"); !done) return copy_failure(to, done.error());
  if (auto done = look.db->copy_index_to(to, copied_at); !done)
    return copy_failure(to, done.error());
  for (const char* const folder : {"/records", "/ids", "/commits", "/index", ""}) {
    sync_folder(to + folder);
  }
  return {};
}

/// Beyond what is copied: the index is written anew, and a check of the copy repeats its log.
std::uint64_t needed_for(const StoreLook& look) {
  std::uint64_t bytes = bytes_below(look.shards.front().db->path());
  for (const Look& shard : look.shards) bytes -= bytes_below(shard.db->path() + "/commits");
  return bytes + spare_bytes;
}

}  // namespace

std::expected<void, StoreFileError> copy_store(StoreLook& look, const std::string& to,
                                               std::optional<StoreTime> copied_at,
                                               const StoreFileProgress& progress) {
  const std::string parent = std::filesystem::path(to).parent_path().string();
  if (const auto why = embedded::why_too_full(parent, needed_for(look), 0, "the copy")) {
    return copy_failure(parent, *why);
  }
  const auto shards = static_cast<std::uint32_t>(look.shards.size());
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    const std::string folder = folder_of_shard(to, shard);
    const std::string above = std::filesystem::path(folder).parent_path().string();
    if (shard == 1 && ::mkdir(above.c_str(), 0700) != 0) return cannot_write(above);
    const StoreFileProgress part = part_of(progress, shard, shards);
    auto copied = copy_shard(look.shards[shard], folder, copied_at, part);
    if (!copied) return copied;
    if (shard > 0) sync_folder(above);
  }
  sync_folder(to);
  return {};
}

}  // namespace idem::segments
