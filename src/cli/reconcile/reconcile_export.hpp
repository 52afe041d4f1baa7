#pragma once

#include "cli/reconcile/reconcile_list.hpp"
#include "cli/reconcile/reconcile_options.hpp"
#include "compare/export_reader.hpp"
#include "core/bytes/digests.hpp"

#include <expected>
#include <memory>
#include <string>

namespace idem::cli {

/// A provider's export, opened.
struct OpenExport {
  std::string name{};  ///< Shown to people and written into evidence.
  std::unique_ptr<compare::ExportReader> reader{};
  /// Digest of the bytes read so far.
  std::shared_ptr<FramedDigest> digest = std::make_shared<FramedDigest>();
  /// A file always states its end: by ending.
  std::shared_ptr<ListEnd> list = std::make_shared<ListEnd>(false, true);

  /// "NAME:LINE:COLUMN: what is wrong".
  std::string sentence_of(const compare::BadLine& bad) const;
};

/// A line as it is compared, with the values that match it to a record.
struct ReadLine {
  compare::Theirs theirs{};
  std::string match{};  ///< Empty: the line has none.
  std::string scope{};
};

/// Reads the fields of an export's lines by the options that name them.
class ExportFields {
 public:
  explicit ExportFields(const ReconcileOptions& options);

  const std::vector<std::string>& names() const noexcept { return names_; }
  std::expected<ReadLine, compare::BadLine> read(const compare::ExportLine& line) const;

 private:
  using Place = std::optional<std::size_t>;

  std::expected<compare::Money, std::string> money_of(const compare::ExportLine& line) const;
  const std::optional<std::string>& value(const compare::ExportLine& line, const Place& at) const;

  const ReconcileOptions& options_;
  std::vector<std::string> names_;
  Place match_, scope_, amount_, currency_, status_, id_, time_;
};

/// Opens the file, standard input or list of the options. The error is a sentence.
std::expected<OpenExport, std::string> open_export(const ReconcileOptions& options,
                                                   const ExportFields& fields);

/// A currency in upper case, as it is compared. None: it is longer than any currency.
std::optional<std::string> plain_currency(std::string_view text);

}  // namespace idem::cli
