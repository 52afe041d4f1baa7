#include "core/record/store_clock.hpp"
#include "store/file_access.hpp"
#include "store/log/database.hpp"
#include "store/log/files.hpp"
#include "store/log/index_failure.hpp"
#include "store/log/index_options.hpp"
#include "store/log/numbered_value.hpp"
#include "store/record_rows.hpp"

#include <rocksdb/db.h>
#include <rocksdb/utilities/write_batch_with_index.h>

#include <sys/stat.h>

#include <cerrno>

namespace idem::segments {
namespace {

using ::rocksdb::Status;

constexpr std::size_t backed_up_at_once = 1UL << 20U;

}  // namespace

std::expected<void, std::string> Database::copy_log_to(const std::string& path) {
  const std::string folder = path + "/commits";
  if (::mkdir(folder.c_str(), 0700) != 0) return std::unexpected(words_on(errno, folder, path));
  const auto format = whole_file(path_ + "/commits/format");
  if (!format) return std::unexpected(path_ + "/commits/format cannot be read");
  if (!write_whole(folder, folder + "/format", *format)) {
    return std::unexpected(words_on(errno, folder, path));
  }
  Background background;
  CommitLog log(folder, records_.file_bytes(), background);
  if (auto opened = log.open(); !opened) return opened;
  log.go_on_behind(log_.last_number() - 1);
  (void)log.begins_file();
  build_frame(::rocksdb::WriteBatch().Data(), true);
  log.append({}, frame_);
  background.stop();  // Its jobs are the log's.
  return {};
}

std::expected<void, std::string> Database::copy_mark_to(const std::string& path) const {
  ProgressMark::Value value = mark_.value();
  value.commit = log_.last_number();
  value.at = wall_time();
  if (ProgressMark::make(path, log_.tag(), value)) return {};
  return std::unexpected(words_on(errno, path, path));
}

std::expected<void, std::string> Database::copy_index_to(const std::string& path,
                                                         std::optional<StoreTime> copied_at) {
  std::vector<::rocksdb::ColumnFamilyHandle*> handles;
  ::rocksdb::DB* opened = nullptr;
  const LogSizes sizes;
  Status status = ::rocksdb::DB::Open(index_options(sizes), index_of(path), index_families(sizes),
                                      &handles, &opened);
  const std::unique_ptr<::rocksdb::DB> to(opened);
  ::rocksdb::WriteBatch batch;
  for (std::size_t i = 0; i < family_count && status.ok(); ++i) {
    auto at = iterate(static_cast<Family>(i));
    for (at.to_first(); at.is_on_key() && status.ok(); at.next()) {
      batch.Put(handles[i], slice(at.key()), slice(at.value()));
      if (batch.GetDataSize() < backed_up_at_once) continue;
      status = to->Write(without_log(), &batch);
      batch.Clear();
    }
    if (status.ok()) status = at.status();
  }
  if (copied_at && status.ok()) {
    status = batch.Put(handles[static_cast<std::size_t>(Family::meta)], slice(meta_copied_at),
                       slice(numbered_value(meta_copied_at, to_bits(*copied_at))));
  }
  if (status.ok()) status = to->Write(without_log(), &batch);
  if (status.ok()) status = to->Flush({}, handles);
  for (auto* const handle : handles) to->DestroyColumnFamilyHandle(handle);
  if (!status.ok()) return std::unexpected(words_of(status, path));
  return {};
}

}  // namespace idem::segments
