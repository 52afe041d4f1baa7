#pragma once

#include <idem/record.hpp>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// @file
/// Compares our records with a provider's lines. Pure: the caller reads and asks.
namespace idem::compare {

/// The value that matches a line to a record: the record's id, or a digest of a text on both sides.
using Name = std::array<std::uint8_t, 16>;
Name name_of(std::string_view text);

/// An amount and currency of a stored answer or of a line.
struct Money {
  std::string amount{};    ///< As exact_amount() spells it; empty: there is none.
  std::string currency{};  ///< In upper case; empty: there is none.
  bool operator==(const Money&) const = default;
};

/// One of our records.
struct Ours {
  RecordId ref{};
  State state = State::completed;
  std::optional<Fence> fence{};  ///< None: there was no attempt.
  int status = 0;                ///< Of the stored answer; 0: there is none.
  /// Whether the answer's body can be compared.
  bool has_body = false;
  bool is_contested = false;
  StoreTime created_at{};
  StoreTime locked_until{};
  Money money{};
};

/// One of the provider's lines.
struct Theirs {
  std::uint64_t line = 0;
  std::string id{};  ///< The provider's name for it.
  /// Whether the line reports that money moved, not that the charge was refused.
  bool happened = true;
  /// Its status, if no rule says whether that status means success or refusal. `happened` is false
  /// then.
  std::optional<std::string> unclear{};
  std::optional<StoreTime> at{};  ///< None: within the period.
  Money money{};
};

/// The period and the fields that are compared.
struct Rules {
  std::optional<StoreTime> from{};  ///< None: from the beginning of all.
  std::optional<StoreTime> to{};    ///< Excluded. None: until the export was made.
  /// How far apart the moments of the two sides may be. Nothing that lies so near to an end of the
  /// period is reported as missing.
  Millis slack{};
  bool amount = false;
  bool currency = false;
};

/// The result for a record, or for lines without a record.
enum class Kind : std::uint8_t {
  duplicate,       ///< It happened more than once under one name.
  status_differs,  ///< One side says that it happened, the other that it did not, or not yet.
  theirs_only,     ///< It happened, and there is no record.
  ours_only,       ///< The record is completed or expired; there is no line.
  amount_differs,  ///< It happened on both sides, with different amounts or currencies.
  undecided,       ///< In progress or unknown; or pending without a charge; or no rule says what
                   ///< the line's status means.
  agree,
  at_edge,  ///< One-sided, but too near to an end of the period to count.
};
inline constexpr std::size_t kinds = 8;
/// "ours_only".
std::string_view name_of(Kind kind) noexcept;
/// Whether the two sides differ.
bool is_difference(Kind kind) noexcept;

/// A record or lines that neither agree nor lie at the edge of the period.
struct Finding {
  Kind kind = Kind::agree;
  std::optional<Ours> ours{};
  std::vector<Theirs> theirs{};
  std::string why{};  ///< A sentence.
};

/// The result of a comparison.
struct Result {
  std::array<std::uint64_t, kinds> counts{};
  /// Agreeing records whose amounts could not be compared, because no answer is stored.
  std::uint64_t by_existence = 0;
  /// All lines that matched a record, and all that matched none, also refused ones and those
  /// outside of the period.
  std::uint64_t lines_met = 0;
  std::uint64_t lines_unmet = 0;
  /// Ordered by kind, then by our moment or their line; limits::comparison_findings_max of each
  /// kind at most.
  std::vector<Finding> findings{};

  std::uint64_t count(Kind kind) const { return counts[static_cast<std::size_t>(kind)]; }
  std::uint64_t differences() const noexcept;
};

/// One comparison: the caller adds all records, then all lines, then calls result(). A record needs
/// about 200 bytes, and so does a line without a record.
class Comparison {
 public:
  explicit Comparison(Rules rules) : rules_(rules) {}

  /// Adds a record under the names by which lines may find it. False: there are already
  /// limits::comparison_entries_max entries.
  bool add(const Ours& ours, std::span<const Name> names);

  /// The record that a line matched; none: none so far. `full`: as with a record.
  struct Met {
    std::optional<Ours> ours{};
    bool full = false;
  };
  /// Adds a line. `names` are tried in order; a line without any matches no record.
  Met add(const Theirs& theirs, std::span<const Name> names);

  /// Names of lines within the period that matched no record, `count_max` or a few more. Their
  /// records may lie outside of the period; the caller may look them up and add them before
  /// result().
  std::vector<Name> unmet(std::size_t count_max) const;

  /// Ends the comparison; nothing can be added afterwards.
  Result result() &&;

 private:
  struct Entry {
    Ours ours;
    std::uint64_t line = 0;  // The first line that happened, and its id.
    std::string id{};
    std::uint32_t happened = 0;
    std::uint32_t refused = 0;
    std::uint32_t unclear = 0;
    bool differs = false;
  };
  struct Unmet {
    Theirs theirs;
    std::vector<Name> names;
  };

  Entry* find(std::span<const Name> names);
  void meet(Entry& entry, const Theirs& theirs);
  Kind one_sided(Kind kind, const std::optional<StoreTime>& at) const noexcept;
  bool is_outside(const std::optional<StoreTime>& at) const noexcept;
  Finding finding_of(const Entry& entry) const;
  Finding unclear_finding_of(const Ours& ours) const;
  Finding finding_of(std::span<const Unmet> lines) const;
  void add_unmet_findings(Result& result);

  Rules rules_;
  std::vector<Entry> entries_;
  std::vector<std::pair<Name, std::uint32_t>> index_;
  bool is_sorted_ = true;
  // The lines of entries that are shown.
  std::unordered_map<std::uint32_t, std::vector<Theirs>> shown_;
  std::vector<Unmet> unmet_;
  std::uint64_t lines_met_ = 0;
  std::uint64_t lines_unmet_ = 0;
};

}  // namespace idem::compare
