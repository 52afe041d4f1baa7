#pragma once

#include "cli/commands/operator_command.hpp"
#include "cli/reconcile/reconcile_export.hpp"
#include "cli/reconcile/reconcile_print.hpp"
#include "cli/reconcile/reconcile_records.hpp"
#include "cli/terminal/progress.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace idem::cli {

/// Whether positive evidence may complete a record in this state (protocol.md §3).
bool accepts_positive_evidence(State state) noexcept;

/// `idem reconcile`: compares a provider's export with our records. Changes records only with
/// --resolve.
class ReconcileCommand : public OperatorCommand {
 public:
  /// Declares the command; `program` outlives this.
  explicit ReconcileCommand(const Command& program);

  /// The exit code.
  int run();

 private:
  /// A line that may settle its record, kept for the evidence.
  struct Kept {
    std::string json{};
    std::string digest{};  ///< SHA-256 of the line's bytes.
  };

  OurRecords::Admin admin() const;
  /// Adds all lines of the export to `comparison`. Error: an exit code; the reason is printed.
  std::expected<void, int> read_export(OpenExport& opened, const ExportFields& fields,
                                       const OurRecords& records, compare::Comparison& comparison);
  std::expected<void, int> compare_batch(const OurRecords& records,
                                         compare::Comparison& comparison);
  std::expected<std::vector<std::vector<compare::Name>>, int> names_of_batch(
      const OurRecords& records) const;
  std::expected<void, int> look_outside(const OurRecords& records, compare::Comparison& comparison);
  void note_status(const compare::Theirs& line);
  void note_bad_line(const OpenExport& opened, const compare::BadLine& bad);
  std::expected<void, int> resolve(const OpenExport& opened);
  std::expected<Settled, int> settle(const OpenExport& opened, std::size_t finding);
  /// Why the absence of a line does not prove that the record's work did not happen; empty: it
  /// does, as far as this command can see.
  std::string why_not_absent(const OpenExport& opened, const compare::Ours& ours) const;
  void progress(const char* what, std::size_t count);

  ReconcileOptions options_;
  ComparisonReport report_;
  struct PendingLine {
    ReadLine line;
    Kept kept;
  };
  std::vector<PendingLine> batch_;
  std::map<std::uint64_t, Kept> kept_;
  std::size_t kept_bytes_ = 0;
  std::optional<Progress> progress_;
  std::chrono::steady_clock::time_point progress_printed_at_ = std::chrono::steady_clock::now();
};

}  // namespace idem::cli
