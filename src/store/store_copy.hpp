#pragma once

#include "core/bytes/digests.hpp"

#include <idem/store.hpp>

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>

namespace idem {

/// The source of a copy, which decides what becomes of its attempts.
enum class CopySource : std::uint8_t {
  serving,  ///< Others use it: no running record is copied.
  closed,   ///< No work begins there. An attempt past its lease that may be resumed is ended first.
  kept,     ///< Nobody uses it: an attempt past its lease is copied as it is.
};

/// What one pass of a copy saw and did.
struct CopyPass {
  std::uint64_t records = 0;    ///< That both stores have now, alike.
  std::uint64_t put = 0;        ///< Of them, those that the target did not have so before.
  std::uint64_t removed = 0;    ///< That only the target had.
  std::uint64_t running = 0;    ///< Left out: an attempt of the source has them.
  std::uint64_t in_phases = 0;  ///< Between two phases, whose input the source keeps apart.
  std::optional<StoreTime> runs_until{};  ///< The last lease of `running`.
  std::uint64_t evidence = 0;             ///< Lines about those records, alike in both.
  std::uint64_t journal_lines = 0;        ///< Of all journals, alike in both.
  std::uint64_t lines_put = 0;            ///< Of both kinds of lines.
  /// How often a store did not answer, or throttled, and was asked again: what it had done by then
  /// is not counted as put.
  std::uint64_t asked_again = 0;
  /// SHA-256 over the records in the order of their ids, with their answers, requests and evidence,
  /// as they were read from each store.
  Digest source{};
  Digest target{};

  /// The target had everything before, so that all of it was compared and nothing written.
  bool is_clean() const noexcept { return put == 0 && lines_put == 0 && asked_again == 0; }
};

/// Called with the pass so far, now and then.
using CopyProgress = std::function<void(const CopyPass&)>;

/// How long a copy goes on without an answer of a store, or while it throttles all that is asked:
/// longer than the failover of a server takes.
inline constexpr Millis copy_patience_default{60'000};

struct CopyError {
  enum class Kind : std::uint8_t {
    unavailable,  ///< A store could not be asked; a repetition goes on.
    damaged,      ///< The source has something that cannot be read.
    refused,      ///< The target holds what is no part of this copy, or cannot hold a part of it.
  };
  Kind kind = Kind::unavailable;
  std::string why;  ///< A sentence.
};

/// Of a call to FROM or TO.
CopyError copy_error(const char* which, const StoreError& error);
inline std::unexpected<CopyError> copy_failed(const char* which, const StoreError& error) {
  return std::unexpected(copy_error(which, error));
}

/// Makes `to` hold what `from` holds: all live records with their answers, stored requests and
/// evidence, and all journals. Reads everything of both and writes what differs, so that a pass
/// after an interruption goes on, and a pass without a difference proves that they are alike. Only
/// reads `from`, but for the attempts of a closed source. If a store does not answer in time, it is
/// asked for less at once, and again until nothing has gone on for `patience`.
std::expected<CopyPass, CopyError> copy_records(Store& from, Store& to, CopySource source,
                                                const CopyProgress& progress,
                                                Millis patience = copy_patience_default);

/// Ends the attempts and requests of `from` whose time is over, as every gateway does.
std::expected<void, CopyError> end_overdue(Store& from);

/// Between the clock of `to` and that of `from`, as far as two calls show it.
std::expected<Millis, CopyError> clock_difference(Store& from, Store& to);

}  // namespace idem
