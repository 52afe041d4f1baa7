#include "store/log/index_failure.hpp"

#include "store/file_access.hpp"
#include "store/log/index_options.hpp"
#include "store/log/making.hpp"

#include <rocksdb/status.h>

#include <cerrno>
#include <string_view>

namespace idem::segments {
namespace {

/// RocksDB's words for a lock that is held; it names a lock that cannot be had likewise.
constexpr std::string_view lock_is_tried = "While lock file";
constexpr std::string_view lock_is_ours = "lock hold by current process";

/// The file that an error of RocksDB's names: its text ends with it, and with the system's words.
std::string file_in(const std::string& text, const std::string& path) {
  const auto begin = text.find(path + "/");
  const auto end = text.rfind(": ");
  return begin == text.npos || end == text.npos || end < begin ? index_of(path)
                                                               : text.substr(begin, end - begin);
}

}  // namespace

std::string damaged(const std::string& path, const std::string& what) {
  if (auto why = why_no_access(path, FileUse::reading)) return *why;
  return lacking(path, what) + ", or keep what can be read (idem store recover)";
}

std::string lacking(const std::string& path, const std::string& what) {
  if (auto why = why_no_access(path, FileUse::reading)) return *why;
  return path + ": is damaged: " + what +
         ". Keys could run again, so it is not opened and nothing was changed: bring back a copy "
         "of the store (idem store restore)";
}

std::string words_of(const ::rocksdb::Status& status, const std::string& path) {
  const std::string text = status.ToString();
  const int error = status.IsIOError() ? error_at_the_end_of(text) : 0;
  if (error == 0) return "RocksDB says: " + text;
  const std::string file = file_in(text, path);
  return file + ": " + words_on(error, file, path);
}

bool is_kept_out(const ::rocksdb::Status& status) {
  if (!status.IsIOError()) return false;
  const std::string text = status.ToString();
  return text.contains(lock_is_tried) || text.contains(lock_is_ours) ||
         is_about_access(error_at_the_end_of(text));
}

StoreError database_failure(const std::string& path, const ::rocksdb::Status& status) {
  const std::string text = status.ToString();
  const int error = status.IsIOError() ? error_at_the_end_of(text) : 0;
  const bool is_held = text.contains(lock_is_ours) ||
                       (text.contains(lock_is_tried) && (error == EAGAIN || error == EACCES));
  if (is_held) return {StoreError::Code::unavailable, owned_by_another(path)};
  if (status.IsCorruption() || error == ENOENT) {
    return {StoreError::Code::refused, lacking(path, words_of(status, path))};
  }
  if (error != 0) {
    return {StoreError::Code::refused,
            part_failure(path, file_in(text, path), "cannot be used", error)};
  }
  return {StoreError::Code::refused,
          path + ": its index cannot be opened (" + words_of(status, path) +
              "): if another version of the program used the store, use that one; nothing was "
              "changed"};
}

}  // namespace idem::segments
