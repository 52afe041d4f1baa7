#include "store/log/journal_lines.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"
#include "store/log/keys.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::segments {
namespace {

constexpr std::size_t number_bytes = sizeof(std::uint64_t);

std::string prefix_of(std::string_view journal) {
  std::string prefix(journal);
  return prefix += '\0';
}
std::string key_of(std::string_view journal, std::uint64_t number) {
  std::string key = prefix_of(journal);
  append_ordered(key, number);
  return key;
}

struct Line {
  std::int64_t at = 0;
  std::uint64_t bytes = 0;  ///< Of the journal, with this one.
  std::string_view text;
  bool is_damaged = false;
};
/// Total.
Line parse_line(std::string_view key, std::string_view value) {
  Line line;
  line.is_damaged = !without_checksum(RecordId{}, value, key);
  ByteReader in(value);
  line.at = static_cast<std::int64_t>(in.number<std::uint64_t>());
  line.bytes = in.number<std::uint64_t>();
  line.text = in.framed();
  return line;
}

}  // namespace

void JournalLines::each(
    Database& db,
    const std::function<void(const std::string&, const JournalLine&, std::uint64_t)>& see) {
  auto at = db.iterate(Family::journals);
  for (at.to_first(); at.is_on_key(); at.next()) {
    const std::string_view key = at.key();
    const std::string name(key.substr(0, key.find('\0')));
    const Line found = parse_line(key, at.value());
    JournalLine line{ordered_at(key, name.size() + 1), StoreTime(Millis(found.at)),
                     std::string(found.text)};
    line.is_damaged = found.is_damaged;
    see(name, line, found.bytes);
  }
  db.check(at, Family::journals);
}

JournalEnd JournalLines::end_of(const std::string& journal) {
  const std::string prefix = prefix_of(journal);
  auto at = db_.iterate(Family::journals);
  at.back_to(key_of(journal, ~std::uint64_t{0}));
  if (!db_.check(at, Family::journals)) return {};
  if (!at.is_on_key() || !at.key().starts_with(prefix)) return {};
  return {ordered_at(at.key(), prefix.size()), parse_line(at.key(), at.value()).bytes};
}

void JournalLines::append(const std::string& journal, const JournalLine& line,
                          std::uint64_t bytes) {
  if (db_.has_failed_step()) return;  // Where it ends is not known.
  std::string value(2 * number_bytes + framed_bytes(line.bytes), '\0');
  ByteWriter out(value.data());
  out.number(to_bits(line.at));
  out.number(bytes);
  out.framed(line.bytes);
  const std::string key = key_of(journal, line.seq);
  append_checksum(RecordId{}, value, key);
  db_.put(Family::journals, key, value);
}

void JournalLines::read(const ReadLines& verb, const SeeLine& see) {
  const std::string prefix = prefix_of(verb.journal);
  auto at = db_.iterate(Family::journals);
  for (at.to(key_of(verb.journal, verb.after + 1)); at.is_on_key() && at.key().starts_with(prefix);
       at.next()) {
    const Line found = parse_line(at.key(), at.value());
    JournalLine line{ordered_at(at.key(), prefix.size()), StoreTime(Millis(found.at)),
                     std::string(found.text)};
    line.is_damaged = found.is_damaged;
    if (!see(std::move(line))) return;
  }
  db_.check(at, Family::journals);
}

// From name to name, so that it reads one line of each journal and not all of them.
std::vector<JournalSummary> JournalLines::list(const ListJournals& verb) {
  std::vector<JournalSummary> found;
  const std::size_t most = std::min(verb.limit, limits::journal_read_lines_max);
  auto at = db_.iterate(Family::journals);
  const bool goes_on = verb.after >= verb.prefix && !verb.after.empty();
  at.to(goes_on ? key_of(verb.after, ~std::uint64_t{0}) : verb.prefix);
  while (found.size() < most && at.is_on_key()) {
    const std::string_view key = at.key();
    std::string name(key.substr(0, key.find('\0')));
    if (!name.starts_with(verb.prefix)) break;
    const JournalEnd end = end_of(name);
    at.to(prefix_of(name) + std::string(number_bytes, '\xff'));
    found.push_back({std::move(name), end.last, end.bytes});
  }
  db_.check(at, Family::journals);
  return found;
}

void JournalLines::drop(const std::string& journal) {
  const std::string prefix = prefix_of(journal);
  auto at = db_.iterate(Family::journals);
  std::vector<std::string> keys;
  for (at.to(prefix); at.is_on_key() && at.key().starts_with(prefix); at.next()) {
    keys.emplace_back(at.key());
  }
  if (!db_.check(at, Family::journals)) return;
  for (const std::string& key : keys) db_.erase(Family::journals, key);
}

}  // namespace idem::segments
