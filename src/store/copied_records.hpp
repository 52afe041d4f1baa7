#pragma once

#include "core/bytes/digests.hpp"
#include "store/asked_at_once.hpp"
#include "store/store_copy.hpp"

#include <cstddef>
#include <expected>
#include <optional>
#include <vector>

/// What a copy reads of its two stores.
namespace idem {

/// A record as one store has it.
struct Held {
  std::optional<Record> record;
  std::vector<EvidenceEntry> evidence;
  Digest digest{};  ///< Of both; meaningless without a record.
};

/// The stores differ in what a read of an expired record says it is charged for until it is reaped.
void even_out(Record& record);
Digest digest_of(const Held& held);

using Holding = std::expected<std::vector<Held>, CopyError>;

/// The records of `ids` in one store, which are being read.
class Reading {
 public:
  Reading(Store& store, const char* which, const std::vector<RecordId>& ids);
  Holding wait();

 private:
  const char* which_;
  std::size_t count_;
  Asked<Find> records_;
  Asked<ReadEvidence> evidence_;
};

/// Reads a store's ids in their order.
class Ids {
 public:
  Ids(Store& store, const char* which) : store_(store), which_(which) {}

  /// None at the end. After an error it may be asked again.
  std::expected<std::optional<RecordId>, CopyError> first();
  void drop_first() { ++at_; }

 private:
  Store& store_;
  const char* which_;
  std::vector<RecordId> page_;
  std::size_t at_ = 0;
  std::optional<RecordId> after_;
  bool is_last_ = false;
};

}  // namespace idem
