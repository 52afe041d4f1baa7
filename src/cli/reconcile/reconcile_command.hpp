#pragma once

#include "cli/commands/operator_command.hpp"
#include "cli/reconcile/reconcile_export.hpp"
#include "cli/reconcile/reconcile_print.hpp"
#include "cli/reconcile/reconcile_records.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace idem::cli {

/// Whether a record in this state is ended by positive evidence (protocol.md §3).
bool takes_positive(State state) noexcept;

/// `idem reconcile`: a provider's export against our records. Changes nothing unless it is told to.
class ReconcileCommand : public OperatorCommand {
 public:
  /// Declares the command; `app` outlives this.
  explicit ReconcileCommand(CLI::App& app);

  /// The exit code.
  int run();

 private:
  /// A line that may settle its record.
  struct Kept {
    std::string json{};
    std::string digest{};  ///< SHA-256 of the line as it stands in the export.
  };

  OurRecords::Admin admin() const;
  /// All of the export into `comparison`; an error is an exit code.
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
  /// Empty: that there is no line of it means that it did not happen, as far as can be told here.
  std::string why_not_absent(const OpenExport& opened, const compare::Ours& ours) const;
  void progress(const char* what, std::size_t count);

  ReconcileOptions options_;
  ComparisonReport report_;
  struct Waiting {
    ReadLine line;
    Kept kept;
  };
  std::vector<Waiting> batch_;
  std::map<std::uint64_t, Kept> kept_;
  std::size_t kept_bytes_ = 0;
  std::chrono::steady_clock::time_point told_at_ = std::chrono::steady_clock::now();
};

}  // namespace idem::cli
