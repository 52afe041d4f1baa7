#pragma once

#include "cli/commands/admin_client.hpp"
#include "cli/reconcile/reconcile_options.hpp"
#include "json/value.hpp"

#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace idem::cli {

/// Our side of a comparison, read through the admin API. An error is an exit code; the reason is
/// already printed.
class OurRecords {
 public:
  struct Admin {
    std::function<std::expected<AdminAnswer, int>(const std::string&, const std::string*)> ask;
    std::function<int(const AdminAnswer&)> complain_about;
    std::function<int(const std::string&)> complain;
  };
  /// A client's key and its scope.
  struct Key {
    std::string scope;
    std::string key;
  };

  /// `options` outlives it.
  OurRecords(const ReconcileOptions& options, Admin admin);

  /// Adds all records of the period, extended by the slack. After each page it calls `seen` with
  /// the number so far.
  std::expected<void, int> list(compare::Comparison& into,
                                const std::function<void(std::size_t)>& seen);
  /// The names that the record of each key may have.
  std::expected<std::vector<std::vector<compare::Name>>, int> names_of(
      const std::vector<Key>& keys) const;
  /// The record with this name, the bytes of its ref.
  std::expected<std::optional<compare::Ours>, int> find(const compare::Name& ref) const;

 private:
  std::expected<json::Value, int> read(const std::string& target, const std::string* body) const;
  std::string first_page() const;
  std::optional<compare::Ours> ours_of(const json::Value& record) const;
  compare::Money money_of(const std::optional<std::string>& amount,
                          const std::optional<std::string>& currency) const;
  std::vector<compare::Name> names_of(const json::Value& record, const compare::Ours& ours) const;
  int malformed() const;

  const ReconcileOptions& options_;
  Admin admin_;
};

}  // namespace idem::cli
