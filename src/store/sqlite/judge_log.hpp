#pragma once

#include <idem/record.hpp>

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <string_view>

/// SQLite takes the first bad frame of a write-ahead log for its end, and says nothing of the
/// commits that follow it. So the store reads the log itself (SQLite's file format, section 4).
namespace idem::sqlite {

/// What is in a log, and what SQLite makes of it.
struct LogJudgement {
  enum class Kind : std::uint8_t {
    missing,  ///< There is no file, or nothing in it.
    whole,    ///< It ends with a commit; frames of an earlier generation may follow.
    torn,     ///< Its last commit is not whole, as after a power cut or a kill in the middle.
    damaged,  ///< No crash leaves this: SQLite would drop commits that were durable.
  };
  Kind kind = Kind::missing;
  std::uint64_t bytes = 0;      ///< Of the file.
  std::uint64_t end = 0;        ///< Of the last commit that SQLite takes, or of the header.
  std::uint64_t commits = 0;    ///< That SQLite takes.
  std::uint64_t bad_at = 0;     ///< Of a damaged one: where the bad frame begins; 0: the header.
  bool has_first_page = false;  ///< Of the database, in a commit that SQLite takes.
  std::uint64_t dropped = 0;    ///< Commits from there on, as far as their marks are there.
  StoreTime written_at{};       ///< The last write to what is in it, by this machine's clock.
};

/// Reads all of a log. If a process appends to it meanwhile, its end may seem torn, or damaged. The
/// error is a sentence.
std::expected<LogJudgement, std::string> judge_log(const std::string& log);

/// For a log to which a process may append meanwhile, but which it does not begin anew: what seems
/// damaged is. What was just being written counts as torn.
std::expected<LogJudgement, std::string> judge_written_log(const std::string& log);

/// Judges a log that nobody writes, and shows the pages that were written to it, in their order,
/// also those after what is damaged. `size`: of the database in pages after the commit that ends
/// there; 0: it goes on.
using SeePage = std::function<void(std::uint32_t page, std::string_view bytes, std::uint32_t size)>;
std::expected<LogJudgement, std::string> read_log(const std::string& log, const SeePage& see);

/// Makes the log durable, and cuts a torn end off: a second power cut would leave what looks
/// damaged, with two commits that no sync had covered. Call it before anything is written to the
/// log. The error is a sentence.
std::expected<void, std::string> settle_log(const std::string& log, const LogJudgement& judged);

}  // namespace idem::sqlite
