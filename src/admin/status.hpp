#pragma once

#include "admin/admin.hpp"

namespace idem::admin {

/// How things are, for `GET /v1/status`.
struct Status {
  std::string store_error{};       ///< Empty: it answers.
  std::optional<Census> census{};  ///< None: the store could not be asked.
  /// Of records that are not settled.
  struct Records {
    std::size_t contested = 0;       ///< In progress or unknown.
    std::size_t for_people = 0;      ///< Unknown, and nobody will ask about them again.
    std::size_t leases_overdue = 0;  ///< Ended longer ago than a sweeper takes.
    bool seen_all = true;            ///< Otherwise there are at least so many.
  };
  Records records{};
  metrics::Gauges gauges{};
  bool draining = false;
};

/// What needs a person, or is down.
struct Trouble {
  std::string code;
  std::string detail;  ///< A sentence part.
};
std::vector<Trouble> troubles_of(const Status& status, metrics::Registry& registry);

/// Asks the store for what it needs, in pages.
Task<void> look_at_records(const AdminParts& parts, Status& into);

/// The answer's body.
std::string status_page(const Status& status, metrics::Registry& registry, MonotonicTime now);

}  // namespace idem::admin
