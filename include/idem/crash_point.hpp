#pragma once

#include <cstdint>

/// @file
/// The places where tests kill a process, to check what is left.

namespace idem {

/// The places at which a test build can be killed or stopped: each lies between two lines that
/// touch the store or the wire.
enum class CrashPoint : std::uint8_t {
  parsed,
  fingerprinted,
  reserve_before_commit,
  reserve_after_commit,
  claimed,
  dispatch_before_first_byte,
  dispatch_mid_request,
  dispatch_sent,
  response_head,
  response_mid_body,
  settle_before_commit,
  settle_after_commit,
  answer_before_first_byte,
  answer_mid,
  plan_before_commit,  ///< A turn at an unknown record (protocol.md §19).
  plan_after_commit,
  question_before_first_byte,
  question_answered,
  event_verified,
  resolve_before_commit,
  resolve_after_commit,
  job_decided,  ///< A decision of a job is made, and its result is not noted yet.
  job_noted,
  backup_begun,  ///< The copy of a store has its first pages.
  backup_copied,
  backup_checked,
  backup_named,
  restore_prepared,  ///< The new store is durable under another name.
  restore_old_kept,
  restore_blocked,  ///< The path has neither store.
  restore_named,
  copy_put,     ///< A batch of records is in the copy of a store.
  copy_closed,  ///< The source is closed, and its copy is not compared yet.
  copy_compared,
  copy_moved,  ///< The source is closed for good, and its copy has its mark.
  copy_finished,
  copy_undone,    ///< The source is closed for nobody's copy.
  shards_moving,  ///< The store has another number of shards, and no record was moved.
  shard_copied,   ///< Records are in two shards.
  shards_moved,   ///< All records are in theirs, and the store does not say so yet.
};

/// Does nothing in a shipped binary, which links src/faults/none. In a test binary
/// (src/faults/armed) the environment chooses what happens here: `IDEM_CRASH_AT=NAME[:N]` raises
/// SIGKILL at the Nth passage, `IDEM_STOP_AT=NAME[:N]` raises SIGSTOP. Safe from any thread.
void crash_point(CrashPoint point) noexcept;

/// True when this point is armed in this process, so that a caller can split one write into two and
/// put the point between them. Always false in a shipped binary.
bool crash_point_armed(CrashPoint point) noexcept;

}  // namespace idem
