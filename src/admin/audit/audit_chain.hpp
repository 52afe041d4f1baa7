#pragma once

#include "admin/audit/audit_line.hpp"

#include <map>

namespace idem::admin {

/// A line that was seen elsewhere, in a log or an earlier export.
struct ExpectedLine {
  std::uint64_t seq = 0;
  std::string hash;
};
/// "SEQ:HASH"; none: it is of another form.
std::optional<ExpectedLine> parse_expected_line(std::string_view text);

/// Checks lines one by one, in the order of their numbers from 1 on. A line is good if it names its
/// own number and the line before, and one of the secrets made its hash. Lines of secrets that are
/// not here, such as those from before a rotation, are good only in front of the first line of one
/// that is here, which follows from them: nobody but their writer proves them, so the verdict names
/// that line. Behind it anyone could have written them.
class AuditChain {
 public:
  /// `first_link`: of the store whose lines these are.
  AuditChain(std::string first_link, const std::vector<Secret>& secrets);
  void expect(ExpectedLine line) { expected_ = std::move(line); }

  /// The line that lies under this number. `is_damaged`: the store holds it so.
  void see(std::uint64_t seq, std::string_view bytes, bool is_damaged = false);

  struct Verdict {
    std::uint64_t lines = 0;
    std::optional<std::uint64_t> first_bad{};
    std::string why{};  ///< Of the first bad line.
    /// The first line whose hash one of the secrets made; none: no line was proved.
    std::optional<std::uint64_t> proven_from{};
    std::uint64_t last = 0;  ///< The number of the last line; 0: there is none.
    std::string hash{};      ///< Of the last line; empty: it is no line of an audit.
  };
  /// After the last line.
  Verdict verdict() const;

 private:
  std::string what_is_wrong(std::uint64_t seq, const std::optional<AuditLine>& line,
                            std::string_view bytes);

  std::string link_;
  std::map<std::string, Secret, std::less<>> secrets_;  ///< By their ids.
  std::optional<ExpectedLine> expected_;
  Verdict seen_;
  /// The first of the lines of unknown secrets that no later line has proved.
  std::optional<std::pair<std::uint64_t, std::string>> unproved_;
};

}  // namespace idem::admin
