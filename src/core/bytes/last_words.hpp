#pragma once

#include <idem/record.hpp>

#include <string>
#include <string_view>

namespace idem {

/// Writes to a descriptor of which other processes may hold copies, and whose reader may stand
/// still (a pipe of `tee`, a log driver, a stopped terminal). It is never made non-blocking, which
/// would change it for all of them: poll(2) tells first whether there is room, and no piece is
/// larger than PIPE_BUF, for which a writable pipe has room (pipe(7)).
enum class Written { all, not_in_time, failed };
/// Removes from `text` what the reader took in `patience`. Safe from any thread.
Written write_within(int descriptor, std::string_view& text, Millis patience) noexcept;

/// The log of this process, for code that has none at hand.
struct ProcessLines {
  void (*write)(std::string_view line) noexcept;  ///< Must not wait.
  void (*flush)() noexcept;                       ///< Waits for a second at most.
  /// The line, without its end, that says why the process aborts, in the form of the log.
  std::string (*last_line)(std::string_view reason);
};
/// Null: there is none any more. It lives until it is replaced.
void use_process_lines(const ProcessLines* lines) noexcept;

/// A line, without its end, to the log of this process. Without a log it goes to stderr, or is
/// dropped where stderr has no room for it now.
void write_stderr_line(std::string_view line) noexcept;

/// The reason for which this process is about to abort, as a line on stderr after what waits in the
/// log, and in the log's form. Both have a second.
void say_last_words(std::string_view line) noexcept;

/// While one lives, a library reads what may be damaged, and takes damage for a fault of its own: a
/// program that defines __assert_fail says this sentence then and fails, rather than abort. Of
/// several at once the first one counts. From any thread.
class DamageMet {
 public:
  explicit DamageMet(std::string sentence);
  DamageMet(const DamageMet&) = delete;
  DamageMet& operator=(const DamageMet&) = delete;
  ~DamageMet();
  /// Null: none lives.
  static const std::string* sentence() noexcept;

 private:
  const std::string sentence_;
};

}  // namespace idem
