#pragma once

#include "store/redis/retrying_client.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>

namespace idem::redis {

/// Looks after the sets of the buckets by which sweeper, reaper, dispatcher and reconciler find
/// records. A record that no set lists is found by its key alone: a stored request would rest, and
/// an unknown outcome never be asked about. Loop's thread only.
class WorkLists {
 public:
  /// `warn`: called with a sentence for each bucket whose sets had lost records.
  WorkLists(RetryingClient& client, const Names& names, bool is_cluster,
            std::function<void(const std::string&)> warn);

  /// Compares the sets of the next few buckets with their counters. While some differ, also reads
  /// on among all records of a server, and puts those of such buckets back into their sets.
  Task<void> turn();

 private:
  /// By how much each set is short of its counters; empty: by nothing.
  using Short = std::string;

  Task<void> compare(std::vector<std::size_t> buckets, std::map<std::size_t, Short>& differing);
  Task<void> compare_next();
  Task<void> read_on();
  Task<bool> read_page();
  Task<void> relist(std::vector<RecordId> ids);
  Task<void> end_reading();

  RetryingClient& client_;
  const Names& names_;
  bool is_cluster_;
  std::function<void(const std::string&)> warn_;
  bool is_busy_ = false;
  std::size_t next_bucket_ = 0;
  std::map<std::size_t, Short> differing_;  ///< To be filled again from their records.
  struct GivenUp {
    Short why;
    MonotonicTime until;
  };
  std::map<std::size_t, GivenUp> given_up_;  ///< Filled, and still short: records are lost.
  std::string cursor_;                       ///< Empty: no reading has begun.
  std::map<std::size_t, std::size_t> put_back_;
};

}  // namespace idem::redis
