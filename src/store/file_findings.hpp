#pragma once

#include "store/store_file.hpp"

#include <string>

namespace idem {

/// Most findings that a report lists; all are counted.
inline constexpr std::size_t file_findings_max = 1'000;

/// Collects what is wrong in a report.
class FileFindings {
 public:
  explicit FileFindings(StoreFileReport& report) : report_(report) {}

  void add(std::string where, std::string what, std::string todo);
  void add(const RecordId& record, std::string_view what, std::string todo);

  Fence highest_fence = 0;  ///< Of the records that can be read.

 private:
  StoreFileReport& report_;
};

/// What an operator does about a finding of a kind that every embedded store has.
namespace file_todo {
inline constexpr const char* record =
    "its key stays refused (503 record_damaged): find out what became of the operation of this ref "
    "at your API or provider, and tell its client";
inline constexpr const char* key =
    "no start opens this store: do as \"A start that refuses a damaged store\" in "
    "docs/operations.md; an older backup knows fewer keys than what can be recovered";
inline constexpr const char* key_lost =
    "stop the gateway, and restore a backup that has no findings (idem store restore)";
inline constexpr const char* schedule =
    "nothing is lost, but nobody ends the record by itself: settle it (idem keys show, idem keys "
    "resolve)";
inline constexpr const char* evidence = "idem keys show lists the rest of the record's evidence";
inline constexpr const char* table =
    "restore a backup that has no findings (idem store restore), and look at the disk";
inline constexpr const char* log =
    "no start opens this store: bring back a copy that is whole, or make a store of what can be "
    "read (idem store recover)";
/// Of a line of this journal.
const char* line_of(std::string_view journal) noexcept;
}  // namespace file_todo

}  // namespace idem
