#include "compare/comparison.hpp"
#include <idem/worker_limits.hpp>

#include "core/bytes/digests.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace idem::compare {
namespace {

// The most lines that one finding shows.
constexpr std::size_t lines_shown_max = 16;

bool is_success(int status) { return status >= 200 && status < 300; }

std::string of(const Money& money) {
  const std::string amount = money.amount.empty() ? "no amount" : money.amount;
  return money.currency.empty() ? amount : amount + " " + money.currency;
}

}  // namespace

Name name_of(std::string_view text) {
  const Digest digest = sha256(text);
  Name name;
  std::copy_n(digest.begin(), name.size(), name.begin());
  return name;
}

std::string_view name_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::duplicate:
      return "duplicate";
    case Kind::status_differs:
      return "status_differs";
    case Kind::theirs_only:
      return "theirs_only";
    case Kind::ours_only:
      return "ours_only";
    case Kind::amount_differs:
      return "amount_differs";
    case Kind::undecided:
      return "undecided";
    case Kind::agree:
      return "agree";
    case Kind::at_edge:
      return "at_edge";
  }
  return "";
}

bool is_difference(Kind kind) noexcept {
  return kind != Kind::agree && kind != Kind::undecided && kind != Kind::at_edge;
}

std::uint64_t Result::differences() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kinds; ++i) {
    if (is_difference(static_cast<Kind>(i))) sum += counts[i];
  }
  return sum;
}

bool Comparison::add(const Ours& ours, std::span<const Name> names) {
  if (entries_.size() + unmet_.size() >= limits::comparison_entries_max) return false;
  const auto number = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back({.ours = ours});
  for (const Name& name : names) index_.emplace_back(name, number);
  is_sorted_ = false;
  return true;
}

Comparison::Entry* Comparison::find(std::span<const Name> names) {
  if (!is_sorted_) {
    std::ranges::sort(index_);
    is_sorted_ = true;
  }
  for (const Name& name : names) {
    const auto found =
        std::ranges::lower_bound(index_, name, {}, [](auto& one) { return one.first; });
    if (found != index_.end() && found->first == name) return &entries_[found->second];
  }
  return nullptr;
}

Comparison::Met Comparison::add(const Theirs& theirs, std::span<const Name> names) {
  Entry* const entry = find(names);
  if (entry != nullptr) {
    ++lines_met_;
    meet(*entry, theirs);
    return {.ours = entry->ours};
  }
  ++lines_unmet_;
  // A refused line without a record is no difference. One of which nobody knows whether it was
  // refused may be.
  const bool may_have_happened = theirs.happened || theirs.unclear;
  if (!may_have_happened || is_outside(theirs.at)) return {};
  if (entries_.size() + unmet_.size() >= limits::comparison_entries_max) return {.full = true};
  unmet_.push_back({theirs, {names.begin(), names.end()}});
  return {};
}

void Comparison::meet(Entry& entry, const Theirs& theirs) {
  const Ours& ours = entry.ours;
  const bool we_did = ours.state == State::completed && is_success(ours.status);
  const bool is_first = entry.happened + entry.refused + entry.unclear == 0;
  bool shows =
      !is_first || theirs.unclear || we_did != theirs.happened || ours.state != State::completed;
  if (theirs.happened && we_did && ours.has_body) {
    const bool differs = (rules_.amount && ours.money.amount != theirs.money.amount) ||
                         (rules_.currency && ours.money.currency != theirs.money.currency);
    entry.differs |= differs;
    shows |= differs;
  }
  if (theirs.happened && entry.happened++ == 0) {
    entry.line = theirs.line;
    entry.id = theirs.id;
  }
  if (!theirs.happened) ++(theirs.unclear ? entry.unclear : entry.refused);
  // For an agreeing line, its number and id are enough.
  if (!shows) return;
  auto& shown = shown_[static_cast<std::uint32_t>(&entry - entries_.data())];
  if (shown.empty() && entry.line != 0 && entry.line != theirs.line) {
    shown.push_back({.line = entry.line, .id = entry.id});
    if (ours.has_body) shown.back().money = ours.money;
  }
  if (shown.size() < lines_shown_max) shown.push_back(theirs);
}

bool Comparison::is_outside(const std::optional<StoreTime>& at) const noexcept {
  return at && ((rules_.from && *at < *rules_.from - rules_.slack) ||
                (rules_.to && *at >= *rules_.to + rules_.slack));
}

Kind Comparison::one_sided(Kind kind, const std::optional<StoreTime>& at) const noexcept {
  if (!at) return kind;
  const bool is_near = (rules_.from && *at < *rules_.from + rules_.slack) ||
                       (rules_.to && *at >= *rules_.to - rules_.slack);
  return is_near ? Kind::at_edge : kind;
}

std::vector<Name> Comparison::unmet(std::size_t count_max) const {
  std::set<Name> names;
  for (const Unmet& one : unmet_) {
    if (names.size() >= count_max) break;
    names.insert(one.names.begin(), one.names.end());
  }
  return {names.begin(), names.end()};
}

Finding Comparison::finding_of(const Entry& entry) const {
  const Ours& ours = entry.ours;
  const std::string status = std::to_string(ours.status);
  const bool we_did = ours.state == State::completed && is_success(ours.status);
  Finding finding;
  const auto is = [&](Kind kind, std::string why) {
    finding.kind = kind;
    finding.why = std::move(why);
    return finding;
  };
  if (entry.happened > 1) {
    return is(Kind::duplicate, "it happened " + std::to_string(entry.happened) + " times");
  }
  if (entry.happened == 0 && entry.unclear > 0) return unclear_finding_of(ours);
  switch (ours.state) {
    case State::pending:
      if (entry.happened > 0) {
        return is(Kind::status_differs,
                  "it happened, and the record is pending: it will be run again");
      }
      [[fallthrough]];
    case State::in_progress:
    case State::unknown:
      if (entry.happened > 0) return is(Kind::undecided, "the provider has it");
      return is(Kind::undecided,
                entry.refused > 0 ? "the provider refused it" : "the provider has no line of it");
    case State::failed_retryable:
      if (entry.happened == 0) return is(Kind::agree, "");
      return is(
          Kind::status_differs,
          "it happened, and the record says that nothing was done: a retry would run it again");
    case State::expired:
      if (entry.happened + entry.refused > 0) return is(Kind::agree, "");
      return is(
          one_sided(Kind::ours_only, ours.created_at),
          "the provider has no line of it; the record is expired, and its answer is not stored");
    case State::completed:
      break;
  }
  if (!we_did) {
    if (entry.happened == 0) return is(Kind::agree, "");
    return is(Kind::status_differs, "it happened, and we answered " + status);
  }
  if (entry.happened == 0) {
    if (entry.refused > 0) {
      return is(Kind::status_differs, "the provider refused it, and we answered " + status);
    }
    return is(one_sided(Kind::ours_only, ours.created_at), "the provider has no line of it");
  }
  return is(entry.differs ? Kind::amount_differs : Kind::agree, "");
}

// If our record says that it happened, the sides differ as far as is known. Otherwise the line may
// mean success, so neither agreement nor absence is proven.
Finding Comparison::unclear_finding_of(const Ours& ours) const {
  const bool we_did = ours.state == State::completed && is_success(ours.status);
  Finding finding;
  finding.kind = we_did ? Kind::status_differs : Kind::undecided;
  finding.why = "no option names the line's status, and ";
  finding.why += ours.state == State::completed
                     ? "we answered " + std::to_string(ours.status)
                     : "the record is " + std::string(name_of(ours.state));
  return finding;
}

Finding Comparison::finding_of(std::span<const Unmet> lines) const {
  Finding finding;
  for (const Unmet& one : lines.first(std::min(lines.size(), lines_shown_max))) {
    finding.theirs.push_back(one.theirs);
  }
  const auto did_happen = [](const Unmet& one) { return one.theirs.happened; };
  const auto happened = std::ranges::count_if(lines, did_happen);
  if (happened > 1) {
    finding.kind = Kind::duplicate;
    finding.why = "it happened " + std::to_string(happened) + " times, and there is no record";
    return finding;
  }
  if (happened == 0) {
    const auto is_inside = [&](const Unmet& one) {
      return one_sided(Kind::undecided, one.theirs.at) == Kind::undecided;
    };
    finding.kind = std::ranges::any_of(lines, is_inside) ? Kind::undecided : Kind::at_edge;
    finding.why = "no option names the line's status, and there is no record";
    return finding;
  }
  // Lines of other statuses under this name decide nothing about the one that happened.
  const Unmet& charge = *std::ranges::find_if(lines, did_happen);
  finding.kind = one_sided(Kind::theirs_only, charge.theirs.at);
  finding.why = charge.names.empty() ? "the line names nothing that a record could have"
                                     : "there is no record";
  return finding;
}

void Comparison::add_unmet_findings(Result& result) {
  std::ranges::sort(unmet_, {},
                    [](const Unmet& one) { return std::pair(one.names, one.theirs.line); });
  for (std::size_t from = 0; from < unmet_.size();) {
    std::size_t to = from + 1;
    const auto& names = unmet_[from].names;
    while (to < unmet_.size() && !names.empty() && unmet_[to].names == names) ++to;
    Finding finding = finding_of(std::span(unmet_).subspan(from, to - from));
    const auto kind = static_cast<std::size_t>(finding.kind);
    const bool shows = finding.kind != Kind::at_edge;
    if (++result.counts[kind] <= limits::comparison_findings_max && shows) {
      result.findings.push_back(std::move(finding));
    }
    from = to;
  }
}

Result Comparison::result() && {
  // Records may have been added after these lines.
  const auto met_since = std::erase_if(unmet_, [&](const Unmet& one) {
    Entry* const entry = find(one.names);
    if (entry != nullptr) meet(*entry, one.theirs);
    return entry != nullptr;
  });
  Result result;
  result.lines_met = lines_met_ + met_since;
  result.lines_unmet = lines_unmet_ - met_since;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    Finding finding = finding_of(entry);
    const Kind kind = finding.kind;
    const bool compares = rules_.amount || rules_.currency;
    if (kind == Kind::agree && entry.happened > 0 && compares && !entry.ours.has_body) {
      ++result.by_existence;
    }
    const bool counts_only = kind == Kind::agree || kind == Kind::at_edge;
    if (++result.counts[static_cast<std::size_t>(kind)] > limits::comparison_findings_max) continue;
    if (counts_only) continue;
    finding.ours = entry.ours;
    const auto shown = shown_.find(i);
    if (shown != shown_.end()) finding.theirs = shown->second;
    if (kind == Kind::amount_differs) {
      const auto theirs = std::ranges::find(finding.theirs, true, &Theirs::happened);
      finding.why = "ours is " + of(entry.ours.money) + ", theirs " + of(theirs->money);
    }
    result.findings.push_back(std::move(finding));
  }
  add_unmet_findings(result);
  const auto order = [](const Finding& one) {
    return std::tuple(one.kind, one.ours ? one.ours->created_at : StoreTime{},
                      one.theirs.empty() ? 0 : one.theirs.front().line);
  };
  std::ranges::stable_sort(result.findings, {}, order);
  return result;
}

}  // namespace idem::compare
