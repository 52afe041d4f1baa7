#pragma once

#include <idem/record.hpp>
#include <idem/worker_limits.hpp>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// @file
/// Our records against a provider's lines. Pure: what is read and asked is done by the caller.
namespace idem::compare {

/// What a line is matched to a record by: the record's id, or a digest of a text that both have.
using Name = std::array<std::uint8_t, 16>;
Name name_of(std::string_view text);

/// Of a stored answer, or of a line.
struct Money {
  std::string amount{};    ///< As exact_amount() spells it; empty: there is none.
  std::string currency{};  ///< In upper case; empty: there is none.
  bool operator==(const Money&) const = default;
};

/// A record.
struct Ours {
  RecordId ref{};
  State state = State::completed;
  Fence fence = 0;
  int status = 0;  ///< Of the stored answer; 0: there is none.
  /// Whether the answer's body is there to be compared.
  bool has_body = false;
  bool is_contested = false;
  StoreTime created_at{};
  StoreTime locked_until{};
  Money money{};
};

/// A line.
struct Theirs {
  std::uint64_t line = 0;
  std::string id{};  ///< What the provider calls it.
  /// Whether the line says that money moved, and not that it was refused.
  bool happened = true;
  /// Its status, where no rule says what that means: neither that it happened nor that it was
  /// refused. `happened` is false then.
  std::optional<std::string> unclear{};
  std::optional<StoreTime> at{};  ///< None: within the period.
  Money money{};
};

/// What is compared.
struct Rules {
  std::optional<StoreTime> from{};  ///< None: from the beginning of all.
  std::optional<StoreTime> to{};    ///< Excluded. None: until the export was made.
  /// How far the clocks of the two sides, and the moments that they write down, may be apart. What
  /// lies so near an end of the period is not told as missing on either side.
  Millis slack{};
  bool amount = false;
  bool currency = false;
};

/// What comes of a record or of lines without one.
enum class Kind : std::uint8_t {
  duplicate,       ///< It happened more than once under one name.
  status_differs,  ///< One side says that it happened, and the other that it did not, or not yet.
  theirs_only,     ///< It happened, and there is no record.
  ours_only,       ///< The record says that it happened, or is expired; there is no line.
  amount_differs,  ///< It happened on both sides, with other amounts or currencies.
  undecided,       ///< In progress or unknown; or pending, and there is no charge of it; or the
                   ///< line does not say whether it happened.
  agree,
  at_edge,  ///< One-sided, but too near an end of the period to mean something.
};
inline constexpr std::size_t kinds = 8;
/// "ours_only".
std::string_view name_of(Kind kind) noexcept;
/// Whether the two sides differ in it.
bool is_difference(Kind kind) noexcept;

/// All but those that agree or lie at the edge.
struct Finding {
  Kind kind = Kind::agree;
  std::optional<Ours> ours{};
  std::vector<Theirs> theirs{};
  std::string why{};  ///< A sentence.
};

/// What a comparison says.
struct Result {
  std::array<std::uint64_t, kinds> counts{};
  /// Agreeing records whose amounts could not be compared, as their answers are not kept.
  std::uint64_t by_existence = 0;
  /// Of all lines: those that met a record, and those that met none, whatever they say and whenever
  /// they were.
  std::uint64_t lines_met = 0;
  std::uint64_t lines_unmet = 0;
  /// Ordered by kind, then by our moment or their line; limits::comparison_findings_max of each
  /// kind at most.
  std::vector<Finding> findings{};

  std::uint64_t count(Kind kind) const { return counts[static_cast<std::size_t>(kind)]; }
  std::uint64_t differences() const noexcept;
};

/// One comparison: all records first, then all lines, then the result. A record takes about 150
/// bytes, and so does a line that meets none.
class Comparison {
 public:
  explicit Comparison(Rules rules) : rules_(rules) {}

  /// A record, under the names by which lines may find it. False: there are
  /// limits::comparison_entries_max of them.
  bool add(const Ours& ours, std::span<const Name> names);

  /// A line. `names` are tried in their order; without any, no record can be meant. The record that
  /// it met, as it was added; none: none yet. False in `full` likewise.
  struct Met {
    std::optional<Ours> ours{};
    bool full = false;
  };
  Met add(const Theirs& theirs, std::span<const Name> names);

  /// Names of lines that happened within the period and met no record, so many or a few more: there
  /// may be one outside of the period. What is found can be added before result().
  std::vector<Name> unmet(std::size_t count_max) const;

  /// Nothing can be added afterwards.
  Result result() &&;

 private:
  struct Entry {
    Ours ours;
    std::uint64_t line = 0;  // The first that happened, and what they call it.
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
  void tell_unmet(Result& result);

  Rules rules_;
  std::vector<Entry> entries_;
  std::vector<std::pair<Name, std::uint32_t>> index_;
  bool is_sorted_ = true;
  // Of entries with something to show: the lines that they met.
  std::unordered_map<std::uint32_t, std::vector<Theirs>> shown_;
  std::vector<Unmet> unmet_;
  std::uint64_t lines_met_ = 0;
  std::uint64_t lines_unmet_ = 0;
};

}  // namespace idem::compare
