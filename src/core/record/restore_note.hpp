#pragma once

#include <idem/journal.hpp>
#include <idem/record.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What `idem store restore` writes into the store that it makes, so that everyone who looks at it
/// later learns between which moments keys may be missing. Each restore is one line of a journal;
/// a further line says that the audit has it.
namespace idem {

/// Of those that encryption leaves in clear, that are never dropped, and that go with a copy.
inline constexpr std::string_view restores_journal = "audit/restores";

struct RestoreNote {
  std::optional<StoreTime> copied_at{};  ///< When the copy was made; none: it does not say.
  StoreTime restored_at{};
  // Records that were open in the copy, and are unknown since.
  std::uint64_t in_progress = 0;
  std::uint64_t pending = 0;
  std::uint64_t failed_retryable = 0;
  std::vector<RecordId> first{};  ///< The first of them, `restored_refs_max` at most.

  std::uint64_t open() const noexcept { return in_progress + pending + failed_retryable; }
  bool operator==(const RestoreNote&) const = default;
};
inline constexpr std::size_t restored_refs_max = 16;

std::string to_line(const RestoreNote& note);
/// None: the line is no such note.
std::optional<RestoreNote> parse_restore_note(std::string_view line);

/// Of the lines of the journal; damaged ones say nothing.
std::optional<RestoreNote> last_restore(std::span<const JournalLine> lines);

/// "2026-11-21T18:47:28.120Z to 2026-11-22T09:00:00.000Z", or with "an unknown moment".
std::string span_of(const RestoreNote& note);
/// Sentences for the audit and the log.
std::string sentences_of(const RestoreNote& note);

/// The line that says that the audit has the line `seq` of the journal.
std::string audited_line(std::uint64_t seq);
std::optional<std::uint64_t> parse_audited_line(std::string_view line);

}  // namespace idem
