#pragma once

#include "store/store_kind.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace idem {

/// What every program knows of a kind of store, also if it was linked without it: which URLs it
/// has, and what it can do. `memory:` and `hybrid:` need no library and have no row.
struct KnownKind {
  std::string_view name;   ///< Of its CMake component: "postgres" of idem::postgres.
  std::string_view title;  ///< "PostgreSQL"
  /// What its URLs begin with: the scheme with "://", or "sqlite:", whose rest is a path of this
  /// machine.
  std::span<const std::string_view> schemes;
  /// How its URL is written, first the usual form: "postgres://USER@HOST/DATABASE".
  std::span<const std::string_view> forms;
  /// How other schemes begin that people write for it, in small letters.
  std::span<const std::string_view> mistaken;
  /// The options of its URL that name files, which absolute_store_url() resolves.
  std::span<const std::string_view> files;
  const StoreKind* linked;  ///< Null: the program was linked without it.

  /// Holds a service's rows in the same commit as a record, and so has an outbox.
  bool has_transactions = false;
  /// `idem migrate` makes or upgrades something there.
  bool has_schema = false;
  /// Each durable step is a network round trip, or a confirmed reserve may be lost: see
  /// marks_dispatch_apart().
  bool marks_dispatch_apart = false;
  bool may_be_truth = false;  ///< Of `hybrid:`.
  bool may_be_fast = false;   ///< Of `hybrid:`: a cache. Its StoreKind has open_before.
  bool is_directory = false;  ///< Its path names a directory, not a file.

  bool is_path() const { return !schemes.front().ends_with("//"); }
};
/// "postgres://"
std::string scheme_of(const KnownKind& kind);
/// "postgres://USER@HOST/DATABASE"
std::string usual_form(const KnownKind& kind);
/// "PostgreSQL"
std::string title_of(const KnownKind& kind);

std::span<const KnownKind> known_kinds() noexcept;

/// By the scheme alone, as it is written. Null: none of them.
const KnownKind* known_kind_of(std::string_view url) noexcept;

/// The path in the URL of a store on this machine's disk. None: it has none.
std::optional<std::string> path_in(std::string_view url);

/// "A, B and C" for the `before_last` " and ": a text about each kind for which `has` is true. A
/// null `has`: about all.
std::string listed(bool KnownKind::* has, std::string (*text)(const KnownKind&),
                   std::string_view before_last);

}  // namespace idem
