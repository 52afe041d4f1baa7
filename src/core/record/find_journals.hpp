#pragma once

#include <idem/fingerprint.hpp>
#include <idem/record.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The journals by which a search finds records: one for each value and each day on which records
/// are forgotten, `find/YYYYMMDD/` and a keyed digest of the value. Pure.
namespace idem {

inline constexpr std::string_view find_journals = "find/";
/// Its lines say from when on which values were indexed: FindNote.
inline constexpr std::string_view find_notes = "search/settings";

/// HMAC-SHA-256 of the value, cut to 128 bits as a record's id is.
using FindName = std::array<std::uint8_t, 16>;
FindName find_name(const Secret& secret, std::string_view value);

/// The UTC day of this moment: "20261127".
std::string find_day(StoreTime at);
std::string find_journal(std::string_view day, const FindName& name);
/// The day in the name of such a journal; empty: it is none.
std::string_view day_of_find_journal(std::string_view journal) noexcept;
/// In a listing behind all journals of this day, and before those of the next one.
std::string behind_find_day(std::string_view day);

/// One line: a record that has the value.
struct FindLine {
  RecordId id{};
  /// What the value is to it: "trace_id", "upstream_reference", "request /order_id", "answer /id".
  std::string found_by;
  bool operator==(const FindLine&) const = default;

  std::string text() const;
  static std::optional<FindLine> parse(std::string_view text);
};

inline constexpr std::string_view found_by_trace = "trace_id";
inline constexpr std::string_view found_by_reference = "upstream_reference";
inline constexpr std::string_view found_in_request = "request ";
inline constexpr std::string_view found_in_answer = "answer ";

/// Which values a process indexes. Off: none.
struct FindNote {
  bool is_on = false;
  std::vector<std::string> requests{};  ///< JSON Pointers, without line feeds.
  std::vector<std::string> answers{};
  bool operator==(const FindNote&) const = default;

  std::string text() const;
  /// Lines that a later version writes are skipped.
  static FindNote parse(std::string_view text);
};

}  // namespace idem
