#pragma once

#include "admin/admin.hpp"
#include "core/record/restore_note.hpp"

namespace idem::admin {

/// The state of the process and its surroundings, for `GET /v1/status`.
struct Status {
  std::string store_error{};       ///< Empty: it answers.
  std::optional<Census> census{};  ///< None: the store did not answer.
  /// Counts of unsettled records.
  struct Records {
    std::size_t contested = 0;       ///< In progress, unknown or completed.
    std::size_t for_people = 0;      ///< Unknown, and no provider is asked any more.
    std::size_t leases_overdue = 0;  ///< Over for longer than a sweeper needs.
    bool seen_all = true;            ///< False: all counts are lower bounds.
    bool seen_all_completed = true;  ///< False: that of the contested ones is.
  };
  std::optional<Records> records{};       ///< None: the store did not answer to the end.
  std::optional<RestoreNote> restored{};  ///< The last restore of the store.
  metrics::Gauges gauges{};
  bool draining = false;
};

/// One thing that is down or needs an operator.
struct Trouble {
  std::string code;
  std::string detail;  ///< A sentence part.
};
std::vector<Trouble> troubles_of(const Status& status, metrics::Registry& registry);

/// Reads unsettled and completed records, page by page. Needs the census.
Task<void> count_unsettled(const AdminParts& parts, Status& into);

/// The last restore that the store has gone through.
Task<void> read_restore(const AdminParts& parts, Status& into);

/// The answer's body.
std::string status_page(const Status& status, metrics::Registry& registry, MonotonicTime now);

}  // namespace idem::admin
