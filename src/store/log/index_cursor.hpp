#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace rocksdb {
class Iterator;
class Status;
}  // namespace rocksdb

namespace idem::segments {

/// Moves over one family of the index, in the order of its keys. It begins nowhere: move it first.
/// A move that fails ends it, as the end of the family does: see Database::check().
class IndexCursor {
 public:
  explicit IndexCursor(std::unique_ptr<::rocksdb::Iterator> at) noexcept;
  IndexCursor(IndexCursor&&) noexcept;
  IndexCursor& operator=(IndexCursor&&) = delete;
  ~IndexCursor();

  void to_first();
  /// To the first key that is not less.
  void to(std::string_view key);
  /// To the last key that is not greater.
  void back_to(std::string_view key);
  void next();

  /// False at the end, and before the first move.
  bool is_on_key() const;
  /// Of where it is, until it moves.
  std::string_view key() const;
  std::string_view value() const;

  ::rocksdb::Status status() const;
  /// Empty: it has met no damage.
  std::string status_text() const;

 private:
  std::unique_ptr<::rocksdb::Iterator> at_;
};

}  // namespace idem::segments
