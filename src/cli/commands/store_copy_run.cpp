#include "cli/commands/store_copy_run.hpp"

#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal/messages.hpp"
#include "cli/terminal/progress.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/naming/copied_identity.hpp"
#include "core/record/which_store.hpp"
#include "store/internal_sql.hpp"
#include "store/known_kinds.hpp"
#include "store/restoring.hpp"
#include "store/store_copy.hpp"

#include <idem/crash_point.hpp>
#include <idem/fingerprint.hpp>
#include <idem/outbox.hpp>
#include <idem/store_wait.hpp>

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <set>
#include <thread>

namespace idem::cli {
namespace {

using Opening = CopiedIdentity::Opening;

/// The clocks of two stores that may differ by this much: a moment of a record means the same in
/// both, but for seconds.
constexpr Millis clock_difference_max{10'000};
/// Attempts that still run when the source is closed.
constexpr std::chrono::minutes wait_for_attempts_max{5};
constexpr std::chrono::milliseconds between_passes{500};
/// Of a source that is closed or that nobody uses, the second pass finds nothing to write.
constexpr int passes_max = 10;
constexpr std::uint64_t few_changes = 1'000;

template <class Value>
using Step = std::expected<Value, CopyEnd>;

std::unexpected<CopyEnd> end(int code, std::string why) {
  return std::unexpected(CopyEnd{code, std::move(why)});
}

std::unexpected<CopyEnd> end(const CopyError& error) {
  const bool is_lost = error.kind == CopyError::Kind::unavailable;
  return end(is_lost ? not_reachable : refused, error.why);
}

/// Removes a directory or file beside the source, and what SQLite keeps beside it.
struct RemoveSnapshot {
  void operator()(const std::string* path) const {
    std::error_code code;
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove_all(*path + suffix, code);
    }
    delete path;
  }
};

class CopyRun {
 public:
  CopyRun(const CopyOrder& order, const KnownKind& from, const KnownKind& to)
      : order_(order), from_kind_(from), to_kind_(to) {}

  Step<CopyPass> run() {
    if (auto opened = open_both(); !opened) return std::unexpected(opened.error());
    if (auto fit = check(); !fit) return std::unexpected(fit.error());
    // Before this they would stand in front of a complaint that has another reason.
    for (const std::string& text : std::exchange(warnings_, {})) say_warning("store", text);
    auto first = pass(CopySource::serving);
    if (!first || order_.prepare) return first;
    for (int i = 0; first->put > few_changes && i < passes_max && !is_file(from_kind_); ++i) {
      first = pass(CopySource::serving);
      if (!first) return first;
    }
    if (auto ended = check_phases(*first); !ended) return std::unexpected(ended.error());
    if (auto closed = close_source(); !closed) return std::unexpected(closed.error());
    auto last = last_pass();
    if (!last) return last;
    if (auto ended = finish(); !ended) return std::unexpected(ended.error());
    return last;
  }

  /// Makes the source usable again, unless its copy is finished. It is closed for nobody's copy
  /// first, so that a run that is under way does not finish one.
  Step<void> undo() {
    auto from = open(from_kind_, order_.from, Opening::read);
    if (!from) return std::unexpected(from.error());
    from->reset();
    const std::string former = copied_->closed_for;
    if (former.empty()) return end(refused, "FROM is not closed");
    // Of a --undo that was cut off, the target was looked at before.
    const bool is_undone = former.starts_with(undone_copies);
    const bool has_target = !is_undone && former != order_.lost_copy;
    if (has_target) {
      if (auto ours = must_be_closed_for_target(former); !ours) return ours;
    }
    const std::string undone = std::string(undone_copies) + std::to_string(new_run());
    if (auto closed = close_for(undone, former); !closed) return closed;
    crash_point(CrashPoint::copy_undone);
    if (has_target || is_undone) {
      copied_->run = new_run();
      const auto there = find_target();
      if (!there) return std::unexpected(there.error());
      if (*there) {
        if (auto to = open(to_kind_, order_.to, Opening::begin, false); !to) {
          if (has_target) (void)close_for(former, undone);
          return std::unexpected(to.error());
        }
      }
    }
    copied_->target_id = undone;
    from = open(from_kind_, order_.from, Opening::reopen);
    if (!from) return std::unexpected(from.error());
    return {};
  }

  /// The copy was finished before, by a run whose end nobody saw.
  bool was_finished() const { return was_finished_; }
  bool is_finished() const { return is_finished_ || was_finished_; }
  bool is_closed() const { return is_closed_ || !copied_->closed_for.empty(); }
  const OpenedStore& target() const { return target_; }

 private:
  using Done = Step<void>;

  Done must_be_closed_for_target(const std::string& former) {
    const auto to = open(to_kind_, order_.to, Opening::look);
    if (!to) return std::unexpected(to.error());
    if (target_.id == former) return {};
    return end(refused, "FROM is closed for the copy " + former + ", and TO is another store");
  }

  Done close_for(const std::string& copy, const std::string& former) {
    copied_->target_id = copy;
    copied_->lost_copy = former;
    const auto from = open(from_kind_, order_.from, Opening::close);
    if (!from) return std::unexpected(from.error());
    return {};
  }

  static bool is_file(const KnownKind& kind) { return kind.linked->file != nullptr; }

  static std::uint64_t new_run() {
    std::array<std::uint8_t, 8> bytes{};
    random_bytes(bytes);
    std::uint64_t run = 0;
    for (const std::uint8_t byte : bytes) run = run << 8U | byte;
    return (run >> 12U) | 1U;  // Every reader of JSON can hold it.
  }

  Step<std::unique_ptr<Store>> open(const KnownKind& kind, const std::string& url, Opening opening,
                                    bool may_make = true) {
    copied_->opening = opening;
    const bool is_source = opening == Opening::read || opening == Opening::close ||
                           opening == Opening::move || opening == Opening::reopen;
    // Its settings are warned of once, and it is opened several times.
    const bool is_first = opened_.insert(url).second;
    OpenOptions how{.warn =
                        [this, is_first](const std::string& text) {
                          if (is_first) warnings_.push_back("warning: " + text);
                        },
                    .which = {.make = may_make && opening == Opening::begin, .copied = copied_},
                    .opened =
                        [this, is_source](const OpenedStore& store) {
                          if (!is_source) target_ = store;
                        }};
    // A change of an identity waits for other nodes: on DynamoDB 20 s, and two minutes for one that
    // ended in the middle of its own.
    const Progress progress("idem store: ", is_source ? "opening FROM" : "opening TO",
                            Progress::Elsewhere::slow_lines);
    auto store = kind.linked->open(url, {}, how);
    if (store) return std::move(*store);
    const char* const which = is_source ? "FROM" : "TO";
    const bool is_refused = is_file(kind) || store.error().code == StoreError::Code::refused;
    return end(is_refused ? refused : not_reachable,
               std::string(which) + ", " + shown_store_url(url) + ": " + store.error().detail);
  }

  static void complain_of(const std::string& text) {
    erase_progress();
    std::fprintf(stderr, "idem store: %s\n", printable(text).c_str());
  }

  Done open_both() {
    const auto path = path_in(order_.from);
    std::error_code code;
    // An error other than that it is missing, such as that of a right, the look below tells.
    if (path && !std::filesystem::exists(*path, code) && !code) {
      return end(not_found, "FROM, " + order_.from + ": there is no such store");
    }
    if (auto sound = check_file(); !sound) return sound;
    auto from = open(from_kind_, order_.from, Opening::read);
    if (!from && order_.prepare && is_file(from_kind_)) from = open_snapshot();
    if (!from) {
      if (is_file(from_kind_) && !order_.prepare) {
        from.error().why +=
            " (while a gateway serves from it, --prepare copies what is there already)";
      }
      return std::unexpected(from.error());
    }
    from_ = std::move(*from);
    if (auto fit = look_at_target(); !fit) return fit;
    if (was_finished_) return end(done, "the copy was finished before");
    return begin_target();
  }

  /// Before anything is made there.
  Done look_at_target() {
    const std::string& former = copied_->closed_for;
    const auto is_there = find_target();
    if (!is_there) return std::unexpected(is_there.error());
    was_finished_ = *is_there && copied_->is_finished && !former.empty() && former == target_.id;
    if (*is_there && copied_->is_finished && !was_finished_) {
      return end(refused, "TO, " + shown_store_url(order_.to) +
                              ": it is a store of its own, or a finished copy, and stays as it is: "
                              "name one that does not exist yet");
    }
    const bool is_ours = *is_there && former == target_.id;
    const bool is_lost = former == order_.lost_copy && !copied_->is_moved;
    if (former.empty() || is_ours || is_lost) return {};
    if (former.starts_with(undone_copies)) {
      return end(refused, "FROM is being opened again: run this with --undo first");
    }
    std::string why = "FROM was closed for its copy " + former +
                      ", which takes its place: use that one, or copy it";
    if (!copied_->is_moved) why += ". If it is lost: --lost-copy " + former;
    return end(refused, std::move(why));
  }

  Step<bool> find_target() {
    const auto path = path_in(order_.to);
    std::error_code code;
    if (path && !std::filesystem::exists(*path, code) && !code) return false;
    const auto to = open(to_kind_, order_.to, Opening::look);
    if (to) return true;
    // Of a making that was cut off, too.
    if (copied_->is_missing || to.error().why.contains(no_store_here)) return false;
    return std::unexpected(to.error());
  }

  /// A new run: another one that still works on the target is refused from here on, and what was
  /// written there before is on its disk.
  Done begin_target() {
    to_.reset();
    copied_->run = new_run();
    auto to = open(to_kind_, order_.to, Opening::begin);
    if (!to) return std::unexpected(to.error());
    to_ = std::move(*to);
    is_written_ = false;
    return {};
  }

  /// A listing leaves out what a damaged index does not name.
  Done check_file() const {
    if (!is_file(from_kind_) || order_.prepare) return {};
    Progress progress("idem store: ", "checking FROM", Progress::Elsewhere::slow_lines);
    const auto path = std::filesystem::absolute(*path_in(order_.from)).lexically_normal();
    const auto report =
        from_kind_.linked->file->check(path.string(), [&](std::uint64_t done, std::uint64_t all) {
          progress.show(fmt::format("checking FROM, {} of {} rows", done, all), done, all);
        });
    if (!report) return end(refused, report.error().why);
    if (report->found == 0) return {};
    return end(refused, fmt::format("FROM, {}: {} findings: see idem store check {}", order_.from,
                                    report->found, order_.from));
  }

  /// Of a file that a gateway serves from.
  Step<std::unique_ptr<Store>> open_snapshot() {
    const auto path = std::filesystem::absolute(*path_in(order_.from)).lexically_normal().string();
    snapshot_.reset(new std::string(name_beside(path, "copying")));
    if (auto made = make_snapshot(path); !made) return std::unexpected(made.error());
    copied_->is_snapshot = true;
    return open(from_kind_, std::string(from_kind_.schemes.front()) + *snapshot_, Opening::read);
  }

  Done make_snapshot(const std::string& path) const {
    const Progress progress("idem store: ", "making a backup of FROM",
                            Progress::Elsewhere::slow_lines);
    const auto made = from_kind_.linked->file->backup(path, *snapshot_, {});
    if (!made) return end(refused, made.error().why);
    if (made->found == 0) return {};
    return end(refused, fmt::format("FROM, {}: {} findings: see idem store check {}", order_.from,
                                    made->found, order_.from));
  }

  Done check() {
    const auto difference = clock_difference(*from_, *to_);
    if (!difference) return end(difference.error());
    if (difference->count() > clock_difference_max.count() ||
        difference->count() < -clock_difference_max.count()) {
      return end(refused, fmt::format("the clock of TO is {} ms ahead of that of FROM: leases and "
                                      "retentions would end at other times; set the clocks",
                                      difference->count()));
    }
    const auto census = ask_and_wait(*from_, Count{});
    if (!census) return end(not_reachable, "FROM: " + census.error().detail);
    all_ = std::accumulate(census->by_state.begin(), census->by_state.end(), std::uint64_t{0});
    return check_messages();
  }

  /// They are rows of services, which a copy of the records does not have.
  Done check_messages() {
    if (from_->transactions() == nullptr) return {};
    auto counts = Outbox(*from_->transactions()).count();
    if (!counts) return end(not_reachable, "FROM: " + counts.error());
    std::uint64_t open = 0;
    for (const MessageCount& one : *counts) {
      const bool is_open = one.state == MessageState::waiting || one.state == MessageState::dead;
      if (is_open) open += one.messages;
    }
    if (open == 0) return {};
    return end(refused,
               fmt::format("FROM has {} messages in its outbox that are not delivered, and "
                           "a copy has no messages: let the relays deliver them, or "
                           "discard them (idem outbox, idem dlq). If FROM is closed already: "
                           "--undo makes it usable again",
                           open));
  }

  Step<CopyPass> pass(CopySource source) {
    if (!copied_->is_snapshot) {
      if (auto ended = end_overdue(*from_); !ended) return end(ended.error());
    }
    ++passes_;
    Progress progress("idem store: ", "copying", Progress::Elsewhere::slow_lines);
    auto pass = copy_records(*from_, *to_, source, [&](const CopyPass& so_far) {
      std::string text = fmt::format("pass {}: {} records of about {}, {} lines of journals",
                                     passes_, so_far.records, all_, so_far.journal_lines);
      if (so_far.asked_again != 0) text += fmt::format(", {} pauses", so_far.asked_again);
      progress.show(std::move(text), so_far.records, all_);
    });
    if (!pass) return end(pass.error());
    is_written_ |= !pass->is_clean() || pass->removed != 0;
    return *pass;
  }

  static Done check_phases(const CopyPass& pass) {
    if (pass.in_phases == 0) return {};
    return end(refused, fmt::format("FROM has {} records of work in phases that is not done, whose "
                                    "input is not copied: let its services end that work. If it is "
                                    "closed already: --undo makes it usable again",
                                    pass.in_phases));
  }

  // A store that is closed twice for the same copy stays as it is.
  Done close_source() {
    if (order_.keep_source) return {};
    from_.reset();
    copied_->target_id = target_.id;
    copied_->lost_copy = order_.lost_copy;
    auto from = open(from_kind_, order_.from, Opening::close);
    if (!from) return std::unexpected(from.error());
    from_ = std::move(*from);
    is_closed_ = true;
    crash_point(CrashPoint::copy_closed);
    return {};
  }

  /// Until one of them has written nothing since the target was opened.
  Step<CopyPass> last_pass() {
    const auto until = std::chrono::steady_clock::now() + wait_for_attempts_max;
    const auto source = order_.keep_source ? CopySource::kept : CopySource::closed;
    for (int passes = 0;;) {
      if (is_written_) {
        if (auto begun = begin_target(); !begun) return std::unexpected(begun.error());
      }
      auto last = pass(source);
      if (!last) return last;
      if (auto ended = check_phases(*last); !ended) return std::unexpected(ended.error());
      if (last->running == 0 && !is_written_) {
        if (auto sent = check_messages(); !sent) return std::unexpected(sent.error());
        return compared(*last);
      }
      if (last->running == 0 && ++passes == passes_max) {
        return end(refused, "FROM still changes: end what uses it, and run this again");
      }
      if (last->running != 0 && std::chrono::steady_clock::now() > until) {
        return end(refused,
                   fmt::format("{} attempts of FROM still run, the last until {}: run this again "
                               "after that",
                               last->running, to_rfc3339(*last->runs_until)));
      }
      std::this_thread::sleep_for(between_passes);
    }
  }

  static Step<CopyPass> compared(const CopyPass& last) {
    if (last.source == last.target) return last;
    return end(failed, "the two stores differ after the copy: nothing may use TO");
  }

  Done finish() {
    crash_point(CrashPoint::copy_compared);
    if (auto moved = move_source(); !moved) return moved;
    to_.reset();
    auto to = open(to_kind_, order_.to, Opening::end);
    if (!to) return std::unexpected(to.error());
    is_finished_ = true;
    crash_point(CrashPoint::copy_finished);
    return {};
  }

  /// From here on no other run closes FROM for another copy, or opens it.
  Done move_source() {
    if (order_.keep_source) return {};
    from_.reset();
    auto from = open(from_kind_, order_.from, Opening::move);
    if (!from) return std::unexpected(from.error());
    from_ = std::move(*from);
    crash_point(CrashPoint::copy_moved);
    return {};
  }

  const CopyOrder& order_;
  const KnownKind& from_kind_;
  const KnownKind& to_kind_;
  std::shared_ptr<CopiedIdentity> copied_ = std::make_shared<CopiedIdentity>();
  OpenedStore target_;
  std::set<std::string> opened_;       ///< URLs.
  std::vector<std::string> warnings_;  ///< Of their servers, until they are printed.
  std::unique_ptr<std::string, RemoveSnapshot>
      snapshot_;  ///< Outlives the store that is open in it.
  std::unique_ptr<Store> from_;
  std::unique_ptr<Store> to_;
  std::uint64_t all_ = 0;
  int passes_ = 0;
  bool is_written_ = false;  ///< The target, since it was opened.
  bool is_closed_ = false;
  bool is_finished_ = false;
  bool was_finished_ = false;
};

}  // namespace

std::expected<CopyReport, CopyEnd> run_copy(const CopyOrder& order, const KnownKind& from,
                                            const KnownKind& to) {
  CopyRun run(order, from, to);
  auto pass = run.run();
  if (!pass && !run.was_finished()) return std::unexpected(std::move(pass.error()));
  return CopyReport{.from = shown_store_url(order.from),
                    .to = shown_store_url(order.to),
                    .store_id = run.target().id,
                    .is_finished = run.is_finished(),
                    .was_finished = run.was_finished(),
                    .is_closed = run.is_closed(),
                    .pass = pass.value_or(CopyPass{})};
}

std::expected<void, CopyEnd> undo_copy(const CopyOrder& order, const KnownKind& from,
                                       const KnownKind& to) {
  return CopyRun(order, from, to).undo();
}

}  // namespace idem::cli
