#include "core/record/restore_note.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/hex.hpp"
#include "core/bytes/rfc3339.hpp"

#include <algorithm>
#include <charconv>
#include <map>

namespace idem {
namespace {

using WordFields = std::map<std::string_view, std::string_view>;

constexpr std::string_view audited_word = "audited=";

/// "a=1 b=2"; a word without '=' has no value.
WordFields words_in(std::string_view line) {
  WordFields fields;
  while (!line.empty()) {
    const std::string_view word = take_until(line, ' ');
    const auto equals = std::min(word.find('='), word.size());
    fields[word.substr(0, equals)] = word.substr(std::min(equals + 1, word.size()));
  }
  return fields;
}

std::optional<std::uint64_t> decimal_in(std::string_view digits) {
  std::uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number);
  if (digits.empty() || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

std::string to_line(const RestoreNote& note) {
  std::string line = "restored_at=" + to_rfc3339(note.restored_at);
  if (note.copied_at) line += " copied_at=" + to_rfc3339(*note.copied_at);
  line += " in_progress=" + std::to_string(note.in_progress) +
          " pending=" + std::to_string(note.pending) +
          " failed_retryable=" + std::to_string(note.failed_retryable) + " first=";
  const char* before = "";
  for (const RecordId& id : note.first) {
    line += before + to_hex(id.bytes);
    before = ",";
  }
  return line;
}

std::optional<RestoreNote> parse_restore_note(std::string_view line) {
  WordFields fields = words_in(line);
  const auto restored_at = parse_rfc3339(fields["restored_at"]);
  const auto in_progress = decimal_in(fields["in_progress"]);
  const auto pending = decimal_in(fields["pending"]);
  const auto failed_retryable = decimal_in(fields["failed_retryable"]);
  if (!restored_at || !in_progress || !pending || !failed_retryable) return std::nullopt;
  RestoreNote note{.copied_at = parse_rfc3339(fields["copied_at"]),
                   .restored_at = *restored_at,
                   .in_progress = *in_progress,
                   .pending = *pending,
                   .failed_retryable = *failed_retryable};
  for (std::string_view rest = fields["first"]; !rest.empty();) {
    const auto id = parse_handle(take_until(rest, ','));
    if (!id) return std::nullopt;
    note.first.push_back(*id);
  }
  return note;
}

std::optional<RestoreNote> last_restore(std::span<const JournalLine> lines) {
  std::optional<RestoreNote> last;
  for (const JournalLine& line : lines) {
    auto note = line.is_damaged ? std::nullopt : parse_restore_note(line.bytes);
    if (note) last = std::move(note);
  }
  return last;
}

std::string span_of(const RestoreNote& note) {
  return (note.copied_at ? to_rfc3339(*note.copied_at) : std::string("an unknown moment")) +
         " to " + to_rfc3339(note.restored_at);
}

std::string sentences_of(const RestoreNote& note) {
  std::string text = "A backup was restored: keys that came from " + span_of(note) +
                     " are missing, and a retry of one would run again.";
  if (note.open() == 0) return text + " No record was open in the copy.";
  text += " " + std::to_string(note.open()) + " records were open in the copy (" +
          std::to_string(note.in_progress) + " in_progress, " + std::to_string(note.pending) +
          " pending, " + std::to_string(note.failed_retryable) +
          " failed_retryable) and became unknown:";
  for (const RecordId& id : note.first) text += " " + to_hex(id.bytes);
  return text + (note.first.size() < note.open() ? " and others." : ".");
}

std::string audited_line(std::uint64_t seq) {
  return std::string(audited_word) + std::to_string(seq);
}

std::optional<std::uint64_t> parse_audited_line(std::string_view line) {
  if (!line.starts_with(audited_word)) return std::nullopt;
  return decimal_in(line.substr(audited_word.size()));
}

}  // namespace idem
