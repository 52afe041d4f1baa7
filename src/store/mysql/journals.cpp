#include "store/mysql/crc32.hpp"
#include "store/mysql/failures.hpp"
#include "store/mysql/queries.hpp"
#include "store/mysql/sql_text.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::mysql {
namespace {

void append_big_endian(std::string& to, std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) to += static_cast<char>(value >> shift & 0xff);
}

std::uint32_t sum_of(const std::string& journal, std::uint64_t seq, StoreTime at,
                     std::string_view line) {
  std::string head = journal;
  head += '\0';
  append_big_endian(head, seq);
  append_big_endian(head, static_cast<std::uint64_t>(at.time_since_epoch().count()));
  return crc32(line, crc32(head));
}

/// The number and the total of the journal's last line, and the store's clock.
std::string end_of(const std::string& journal, std::string_view how) {
  std::string sql = "SELECT seq, total FROM idem_journal WHERE name = ";
  SqlText(sql).bytes(journal).sql(" ORDER BY seq DESC LIMIT 1").sql(how).sql("; SELECT idem_now()");
  return sql;
}

struct End {
  std::uint64_t last = 0;
  std::uint64_t bytes = 0;
  StoreTime now{};
};
End to_end(const Results& results) {
  End end;
  if (results[0].size() == 1) {
    end.last = to_unsigned(results[0].cell(0, 0));
    end.bytes = to_unsigned(results[0].cell(0, 1));
  }
  end.now = to_moment(results[1].cell(0, 0));
  return end;
}

/// The statement that appends `verb` behind `end`, and the number of lines that it made. It locks
/// the line before, so that no drop of the journal comes between.
std::string appending(const AppendLine& verb, const End& end) {
  const std::uint64_t seq = end.last + 1;
  const StoreTime at = verb.at.value_or(end.now);
  std::string sql = "INSERT INTO idem_journal (name, seq, at, line, total, checksum) SELECT ";
  SqlText(sql)
      .bytes(verb.journal)
      .sql(", ")
      .number(seq)
      .sql(", ")
      .moment(at)
      .sql(", ")
      .bytes(verb.line)
      .sql(", ")
      .number(end.bytes + verb.line.size())
      .sql(", ")
      .number(sum_of(verb.journal, seq, at, verb.line));
  if (end.last != 0) {
    SqlText(sql)
        .sql(" FROM idem_journal WHERE name = ")
        .bytes(verb.journal)
        .sql(" AND seq = ")
        .number(end.last)
        .sql(" LOCK IN SHARE MODE");
  }
  return sql + "; SELECT ROW_COUNT()";
}

}  // namespace

// Of two appenders behind the same end the primary key refuses one.
Task<Answer> append_line(Connection& connection, AppendLine verb) {
  for (;;) {
    auto looking = connection.run(end_of(verb.journal, ""), limits::store_reply_max);
    const QueryResult looked = co_await std::move(looking);
    if (!looked) co_return std::unexpected(Failure{looked.error().code, looked.error().message});
    const End end = to_end(*looked);
    AppendLine::Reply reply{false, end.last, end.now};
    if (end.last != verb.behind) co_return StoreResult(reply);
    auto asking = connection.run(appending(verb, end), limits::store_reply_max);
    const QueryResult appended = co_await std::move(asking);
    if (appended && to_number(appended->front().cell(0, 0)) == 1) {
      reply.appended = true;
      reply.last = end.last + 1;
      co_return StoreResult(reply);
    }
    if (!appended && !is_duplicate(appended.error())) co_return std::unexpected(appended.error());
  }
}

Task<Answer> read_lines(Connection& connection, ReadLines verb) {
  const std::size_t most = std::min(verb.limit, limits::journal_read_lines_max);
  auto looking = connection.run(end_of(verb.journal, ""), limits::store_reply_max);
  const QueryResult looked = co_await std::move(looking);
  if (!looked) co_return std::unexpected(looked.error());
  const End end = to_end(*looked);
  ReadLines::Reply reply{{}, end.last, end.now};
  if (most == 0) co_return StoreResult(std::move(reply));
  std::string sql = "SELECT seq, at, line, checksum FROM idem_journal WHERE name = ";
  SqlText(sql)
      .bytes(verb.journal)
      .sql(" AND seq > ")
      .number(verb.after)
      .sql(" ORDER BY seq LIMIT ")
      .number(most);
  auto reading = connection.run(std::move(sql), limits::store_reply_max);
  const QueryResult read = co_await std::move(reading);
  if (!read) co_return std::unexpected(read.error());
  const Rows& rows = read->front();
  std::size_t bytes = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    JournalLine line;
    line.seq = to_unsigned(rows.cell(row, 0));
    line.at = to_moment(rows.cell(row, 1));
    line.bytes = std::string(rows.cell(row, 2));
    line.is_damaged =
        to_unsigned(rows.cell(row, 3)) != sum_of(verb.journal, line.seq, line.at, line.bytes);
    bytes += line.bytes.size();
    if (!reply.lines.empty() && bytes > limits::journal_read_bytes_max) break;
    reply.last = std::max(reply.last, line.seq);
    reply.lines.push_back(std::move(line));
  }
  co_return StoreResult(std::move(reply));
}

Task<Answer> list_journals(Connection& connection, ListJournals verb) {
  std::string sql =
      "SELECT j.name, j.seq, j.total FROM idem_journal j JOIN"
      " (SELECT name, MAX(seq) AS last FROM idem_journal WHERE name > ";
  SqlText text(sql);
  text.bytes(verb.after);
  if (!verb.prefix.empty()) {
    text.sql(" AND name >= ").bytes(verb.prefix);
    // No name has a byte above 0x7e.
    text.sql(" AND name < ").bytes(verb.prefix + '\x7f');
  }
  text.sql(" GROUP BY name ORDER BY name LIMIT ")
      .number(std::min(verb.limit, limits::journal_read_lines_max))
      .sql(") l ON l.name = j.name AND l.last = j.seq ORDER BY j.name");
  auto asking = connection.run(std::move(sql), limits::store_reply_max);
  const QueryResult answer = co_await std::move(asking);
  if (!answer) co_return std::unexpected(answer.error());
  std::vector<JournalSummary> found;
  const Rows& rows = answer->front();
  found.reserve(rows.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    found.push_back({std::string(rows.cell(row, 0)), to_unsigned(rows.cell(row, 1)),
                     to_unsigned(rows.cell(row, 2))});
  }
  co_return StoreResult(std::move(found));
}

// The last line stays locked until the end: an appender waits for it.
Task<Answer> drop_journal(Connection& connection, DropJournal verb) {
  auto looking = connection.run("START TRANSACTION; " + end_of(verb.journal, " FOR UPDATE"),
                                limits::store_reply_max);
  const QueryResult looked = co_await std::move(looking);
  if (!looked) co_return std::unexpected(Failure{looked.error().code, looked.error().message});
  const End end = to_end(*looked);
  const bool drops = end.last == verb.last;
  std::string sql;
  if (drops)
    SqlText(sql).sql("DELETE FROM idem_journal WHERE name = ").bytes(verb.journal).sql(";");
  sql += "COMMIT";
  auto dropping = connection.run(std::move(sql), limits::store_reply_max);
  const QueryResult dropped = co_await std::move(dropping);
  if (!dropped) {
    const bool is_of_commit = dropped.error().executed == (drops ? 1U : 0U);
    co_return std::unexpected(is_of_commit ? commit_failed(connection, dropped.error())
                                           : dropped.error());
  }
  const DropJournal::Reply reply{drops, drops ? 0 : end.last};
  co_return StoreResult(reply);
}

}  // namespace idem::mysql
