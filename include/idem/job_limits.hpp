#pragma once

#include <chrono>
#include <cstddef>

/// @file
/// Limits of operators' bulk work, each with its reason.

namespace idem::inline v0_1::limits {

using namespace std::chrono_literals;

// Records of one job. Its lines take 60 bytes for each, and a process that runs or shows the job
// has 40 bytes of memory for each.
inline constexpr std::size_t job_records_max = 100'000;
// Records that the search for a job's records may read: with a state as filter most of them match.
inline constexpr std::size_t job_searched_max = 1'000'000;
// What a preview shows, so that a person sees whether the filter means the right records.
inline constexpr std::size_t job_examples_max = 10;
// Jobs that have begun and not ended. Each has its coroutine and its memory in every process.
inline constexpr std::size_t jobs_open_max = 8;
// Records a second: slow enough by default for a person to look at results and cancel; a thousand
// is about what one connection to a store can do.
inline constexpr unsigned job_rate_default = 10;
inline constexpr unsigned job_rate_max = 1'000;
// Decisions between two lines of results: what a successor has to look up after a crash, and how
// many are made at most behind a cancel.
inline constexpr std::size_t job_chunk_max = 16;
// Refs in one line of a journal, each of 60 bytes at most; such a line has 64 KiB at most.
inline constexpr std::size_t job_targets_per_line = 800;
// The order in a job's first line, with evidence, reason and answer in base64.
inline constexpr std::size_t job_order_bytes_max = 48UL * 1024;
// How long a process may append nothing until another one goes on with its job: several chunks.
// Takeover too early is safe, because both look at the evidence before each decision.
inline constexpr auto job_claim = 10s;
// How often a process looks for jobs, and asks again while the store does not answer.
inline constexpr auto job_look_interval = 2s;
inline constexpr auto job_retry_interval = 1s;
// How long a request may take to write a job down; one that was not begun by then never is.
inline constexpr auto job_begin_max = 5min;
// How long a job and its results can be read, and how often the older ones are dropped.
inline constexpr auto job_kept = std::chrono::hours(24) * 30;
inline constexpr auto job_drop_interval = 1h;
// Jobs in one page of the list: each one takes two reads of the store.
inline constexpr std::size_t jobs_page_max = 100;
// Jobs that this process keeps in memory, besides those that it runs, for the questions about their
// progress.
inline constexpr std::size_t jobs_kept_max = 8;
// How often a process looks up or repeats an append whose reply was lost.
inline constexpr int job_append_tries_max = 8;

// How many people one decision can need: the one who orders, and two who check.
inline constexpr unsigned approvals_needed_max = 3;
// How long an order waits for approvals: over a night; what was seen then is old tomorrow.
inline constexpr auto approval_max = 24h;
// How long a process may take to make a decision that has its approvals, before another one may
// finish it. Longer than a call of the store is repeated; too early is safe, as for a job.
inline constexpr auto approval_deciding_max = 10s;
// An order that waits for approvals lies in one line of a journal.
inline constexpr std::size_t approval_order_bytes_max = 24UL * 1024;
// Approvals in one page of the list, and how long they can be read.
inline constexpr std::size_t approvals_page_max = 100;
inline constexpr auto approval_kept = std::chrono::hours(24) * 30;

// How long an order to reload waits for its end, and how often it looks: the store may take long to
// adopt new routes.
inline constexpr auto reload_wait_max = 60s;
inline constexpr auto reload_look_interval = 20ms;

}  // namespace idem::inline v0_1::limits
