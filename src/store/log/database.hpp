#pragma once

#include "store/log/log_store.hpp"
#include "store/log/running_section.hpp"
#include "store/log/segment_log.hpp"

#include <idem/store.hpp>

#include <rocksdb/db.h>
#include <rocksdb/utilities/write_batch_with_index.h>

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::segments {

/// What lies together, in order of its keys. Numbers in keys are big-endian, so that they order.
enum class Family : std::uint8_t {
  meta,      ///< name -> value with a checksum
  segments,  ///< number of a log's file -> bytes of its versions that are present
  ids,       ///< record id -> place, size and state of its present version
  due,       ///< moment, place -> the ids and places of the versions that are due then
  work,      ///< the few records that a client, a worker or an operator has to come back to
  requests,  ///< record id -> stored request
  evidence,  ///< record id, number -> line
  journals,  ///< name, number -> line
  usage,     ///< scope -> usage
};
inline constexpr std::size_t family_count = 9;

struct DatabaseSettings {
  std::string path;
  bool make = true;  ///< If there is none.
  LogSizes sizes{};
};

/// The log, and beside it an index of what is where, in RocksDB. A transaction is durable once its
/// frame is in the log; RocksDB gets it without a log of its own, writes it to its files later, and
/// a start repeats what it had not written. Used by one thread. A failed write ends the process, as
/// sqlite's: nobody knows what the next start will find.
class Database {
 public:
  using Bytes = ::rocksdb::PinnableSlice;

  /// Fills `running`, which every commit writes into its frame from then on.
  static std::expected<std::unique_ptr<Database>, StoreError> open(const DatabaseSettings& how,
                                                                   RunningSection& running);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // ---- written at the commit; reads do not see it before ----
  void append(Family family, std::string_view key, std::string_view value);
  void remove(Family family, std::string_view key);

  // ---- seen by find() and iterate() at once ----
  void put(Family family, std::string_view key, std::string_view value);
  void erase(Family family, std::string_view key);

  /// False: there is none. An error: it cannot be read, because the medium damaged it.
  std::expected<bool, std::string> get(Family family, std::string_view key, Bytes& value);
  /// With what this transaction put.
  std::expected<bool, std::string> find(Family family, std::string_view key, std::string& value);
  /// With what this transaction put. A failure while it moves: call check().
  std::unique_ptr<::rocksdb::Iterator> iterate(Family family);
  /// Ends the process if the iterator has met damage: what comes next is unknown.
  void check(const ::rocksdb::Iterator& at, std::string_view doing) const;

  /// The versions that this transaction writes: appended here, the first at the place next().
  std::string& versions() noexcept { return versions_; }
  std::uint64_t next() const noexcept { return log_->next(); }
  /// One of an earlier transaction. False: it is gone.
  bool read_version(std::uint64_t place, std::size_t size, std::string& into) {
    return log_->read(place, size, into);
  }
  std::uint32_t current_segment() const noexcept { return log_->current(); }
  /// True if no start would need the log up to the end of this file, which is not the current one.
  /// Otherwise asks RocksDB to write what it has not written.
  bool is_indexed(std::uint32_t segment);
  void drop_segment(std::uint32_t segment) { log_->drop(segment); }

  bool has_written() const noexcept;
  /// Writes all of it as one, durable when this returns.
  void commit();

  const std::string& path() const noexcept { return path_; }

  [[noreturn]] void fail_closed(const ::rocksdb::Status& status,
                                std::string_view doing) const noexcept;

 private:
  Database() = default;
  ::rocksdb::ColumnFamilyHandle* handle(Family family) const noexcept {
    return handles_[static_cast<std::size_t>(family)];
  }

  std::expected<void, std::string> catch_up();

  std::string path_;
  RunningSection* running_ = nullptr;
  std::unique_ptr<SegmentLog> log_;
  std::uint64_t whole_at_ = 0;  ///< The latest frame with all running records.
  std::uint64_t whole_number_ = 0;
  std::string frame_;
  std::string versions_;
  std::unique_ptr<::rocksdb::DB> db_;
  std::vector<::rocksdb::ColumnFamilyHandle*> handles_;
  ::rocksdb::WriteBatch batch_;
  std::unique_ptr<::rocksdb::WriteBatchWithIndex> seen_;
};

inline std::string_view view(const ::rocksdb::Slice& slice) noexcept {
  return {slice.data(), slice.size()};
}
inline ::rocksdb::Slice slice(std::string_view bytes) noexcept {
  return {bytes.data(), bytes.size()};
}

}  // namespace idem::segments
