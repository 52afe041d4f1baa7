#include "core/transitions/journals.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem {

AppendLine::Reply append_line(Journals& journals, AppendLine& verb, StoreTime now) {
  const JournalEnd end = journals.end_of(verb.journal);
  if (end.last != verb.behind) return {false, end.last, now};
  const std::uint64_t bytes = end.bytes + verb.line.size();
  const StoreTime at = verb.at.value_or(now);
  journals.append(verb.journal, {end.last + 1, at, std::move(verb.line)}, bytes);
  return {true, end.last + 1, now};
}

ReadLines::Reply read_lines(Journals& journals, const ReadLines& verb, StoreTime now) {
  ReadLines::Reply reply{{}, journals.end_of(verb.journal).last, now};
  const std::size_t most = std::min(verb.limit, limits::journal_read_lines_max);
  std::size_t bytes = 0;
  if (most == 0) return reply;
  journals.read(verb, [&](JournalLine&& line) {
    bytes += line.bytes.size();
    if (!reply.lines.empty() && bytes > limits::journal_read_bytes_max) return false;
    reply.lines.push_back(std::move(line));
    return reply.lines.size() < most;
  });
  return reply;
}

DropJournal::Reply drop_journal(Journals& journals, const DropJournal& verb) {
  const JournalEnd end = journals.end_of(verb.journal);
  if (end.last != verb.last) return {false, end.last};
  journals.drop(verb.journal);
  return {true, 0};
}

}  // namespace idem
