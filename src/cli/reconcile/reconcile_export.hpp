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
  std::string name{};  ///< For people and for evidence.
  std::unique_ptr<compare::ExportReader> reader{};
  /// Of the bytes that were read; of all of them once there are no more.
  std::shared_ptr<FramedDigest> digest = std::make_shared<FramedDigest>();
  /// A file tells its end by ending.
  std::shared_ptr<ListEnd> list = std::make_shared<ListEnd>(false, true);

  /// NAME:LINE:COLUMN: what is wrong there.
  std::string sentence_of(const compare::BadLine& bad) const;
};

/// A line as it is compared, and what its match is made of.
struct ReadLine {
  compare::Theirs theirs{};
  std::string match{};  ///< Empty: the line has none.
  std::string scope{};
};

/// Which fields of an export mean what.
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

/// The error is a sentence.
std::expected<OpenExport, std::string> open_export(const ReconcileOptions& options,
                                                   const ExportFields& fields);

/// As it is compared: in upper case. None: it is longer than any.
std::optional<std::string> plain_currency(std::string_view text);

}  // namespace idem::cli
