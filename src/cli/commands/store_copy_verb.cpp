#include "cli/commands/store_copy_verb.hpp"

#include "cli/commands.hpp"
#include "cli/commands/tables.hpp"
#include "cli/process/resources.hpp"
#include "cli/terminal/progress.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/naming/copied_identity.hpp"
#include "json/writer.hpp"
#include "store/internal_sql.hpp"
#include "store/known_kinds.hpp"
#include "store/restoring.hpp"
#include "store/store_copy.hpp"

#include <idem/crash_point.hpp>
#include <idem/outbox.hpp>
#include <idem/store_wait.hpp>

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <numeric>
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

struct Ended {
  int code = failed;
  std::string why;  ///< A sentence.
};
template <class Value>
using Step = std::expected<Value, Ended>;

std::unexpected<Ended> end(int code, std::string why) {
  return std::unexpected(Ended{code, std::move(why)});
}

std::unexpected<Ended> end(const CopyError& error) {
  const bool is_lost = error.kind == CopyError::Kind::unavailable;
  return end(is_lost ? not_reachable : refused, error.why);
}

struct Order {
  std::string from;
  std::string to;
  bool prepare = false;
  bool keep_source = false;
  std::string lost_copy;
};

/// A directory or file beside the source, for as long as it is read.
class Snapshot {
 public:
  explicit Snapshot(std::string path) : path_(std::move(path)) {}
  ~Snapshot() {
    std::error_code code;
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove_all(path_ + suffix, code);
    }
  }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class CopyRun {
 public:
  CopyRun(const Order& order, const KnownKind& from, const KnownKind& to)
      : order_(order), from_kind_(from), to_kind_(to) {}

  Step<CopyPass> run() {
    if (auto opened = open_both(); !opened) return std::unexpected(opened.error());
    if (auto fit = check(); !fit) return std::unexpected(fit.error());
    auto first = pass();
    if (!first || order_.prepare) return first;
    for (int i = 0; first->put > few_changes && i < passes_max && !is_file(from_kind_); ++i) {
      first = pass();
      if (!first) return first;
    }
    if (auto closed = close_source(); !closed) return std::unexpected(closed.error());
    auto last = last_pass();
    if (!last) return last;
    if (auto ended = finish(); !ended) return std::unexpected(ended.error());
    return last;
  }

  bool is_finished() const { return is_finished_; }
  bool is_closed() const { return is_closed_; }
  const OpenedStore& target() const { return target_; }

 private:
  using Done = Step<void>;

  static bool is_file(const KnownKind& kind) { return kind.linked->file != nullptr; }

  Step<std::unique_ptr<Store>> open(const KnownKind& kind, const std::string& url,
                                    Opening opening) {
    copied_->opening = opening;
    const bool is_source = opening == Opening::read || opening == Opening::close;
    OpenOptions how{.warn = [](const std::string& text) { complain_of(text); },
                    .which = {.make = opening == Opening::begin, .copied = copied_},
                    .opened =
                        [this, is_source](const OpenedStore& store) {
                          if (!is_source) target_ = store;
                        }};
    auto store = kind.linked->open(url, {}, how);
    if (store) return std::move(*store);
    const char* const which = is_source ? "FROM" : "TO";
    const bool is_refused = is_file(kind) || store.error().code == StoreError::Code::refused;
    return end(is_refused ? refused : not_reachable,
               std::string(which) + ", " + shown_store_url(url) + ": " + store.error().detail);
  }

  static void complain_of(const std::string& text) {
    std::fprintf(stderr, "idem store: %s\n", printable(text).c_str());
  }

  Done open_both() {
    const auto path = path_in(order_.from);
    std::error_code code;
    if (path && !std::filesystem::exists(*path, code)) {
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
    auto to = open(to_kind_, order_.to, Opening::begin);
    if (!to) return std::unexpected(to.error());
    to_ = std::move(*to);
    const std::string& former = copied_->closed_for;
    if (former.empty() || former == target_.id || former == order_.lost_copy) return {};
    return end(refused, "FROM was closed for its copy " + former +
                            ", which takes its place: copy that one. If it is lost: --lost-copy " +
                            former);
  }

  /// A listing leaves out what a damaged index does not name.
  Done check_file() const {
    if (!is_file(from_kind_) || order_.prepare) return {};
    Progress progress("idem store: ", "checking FROM");
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
    snapshot_ = std::make_unique<Snapshot>(name_beside(path, "copying"));
    Progress progress("idem store: ", "making a backup of FROM");
    const auto made = from_kind_.linked->file->backup(path, snapshot_->path(), {});
    if (!made) return end(refused, made.error().why);
    if (made->found != 0) {
      return end(refused, fmt::format("FROM, {}: {} findings: see idem store check {}", order_.from,
                                      made->found, order_.from));
    }
    copied_->is_snapshot = true;
    return open(from_kind_, std::string(from_kind_.schemes.front()) + snapshot_->path(),
                Opening::read);
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
                           "discard them (idem outbox, idem dlq)",
                           open));
  }

  Step<CopyPass> pass() {
    if (!copied_->is_snapshot) {
      if (auto ended = end_overdue(*from_); !ended) return end(ended.error());
    }
    ++passes_;
    Progress progress("idem store: ", "copying");
    auto pass = copy_records(*from_, *to_, [&](std::uint64_t done) {
      progress.show(fmt::format("pass {}: {} records of about {}", passes_, done, all_), done,
                    all_);
    });
    if (!pass) return end(pass.error());
    return *pass;
  }

  // A store that is closed twice for the same copy stays as it is.
  Done close_source() {
    if (order_.keep_source) return {};
    from_.reset();
    copied_->target_id = target_.id;
    auto from = open(from_kind_, order_.from, Opening::close);
    if (!from) return std::unexpected(from.error());
    from_ = std::move(*from);
    is_closed_ = true;
    crash_point(CrashPoint::copy_closed);
    return {};
  }

  Step<CopyPass> last_pass() {
    const auto until = std::chrono::steady_clock::now() + wait_for_attempts_max;
    for (int passes = 0;;) {
      auto last = pass();
      if (!last) return last;
      if (last->in_phases != 0) {
        return end(refused, fmt::format("FROM has {} records of work in phases that is not done, "
                                        "whose input is not copied: let its services end that work",
                                        last->in_phases));
      }
      if (last->running == 0 && last->is_clean()) return compared(*last);
      if (last->running == 0 && ++passes == passes_max) {
        return end(refused,
                   "FROM still changes: end what uses it, or leave --keep-source out, and run this "
                   "again");
      }
      if (last->running != 0 && std::chrono::steady_clock::now() > until) {
        return end(refused,
                   fmt::format("{} attempts of FROM still run, the last until {}: run this again "
                               "after that",
                               last->running, to_rfc3339(*last->runs_until)));
      }
      if (last->running != 0) std::this_thread::sleep_for(between_passes);
    }
  }

  static Step<CopyPass> compared(const CopyPass& last) {
    if (last.source == last.target) return last;
    return end(failed, "the two stores differ after the copy: nothing may use TO");
  }

  Done finish() {
    crash_point(CrashPoint::copy_compared);
    to_.reset();
    auto to = open(to_kind_, order_.to, Opening::end);
    if (!to) return std::unexpected(to.error());
    is_finished_ = true;
    crash_point(CrashPoint::copy_finished);
    return {};
  }

  const Order& order_;
  const KnownKind& from_kind_;
  const KnownKind& to_kind_;
  std::shared_ptr<CopiedIdentity> copied_ = std::make_shared<CopiedIdentity>();
  OpenedStore target_;
  std::unique_ptr<Snapshot> snapshot_;  ///< Outlives the store that is open in it.
  std::unique_ptr<Store> from_;
  std::unique_ptr<Store> to_;
  std::uint64_t all_ = 0;
  int passes_ = 0;
  bool is_closed_ = false;
  bool is_finished_ = false;
};

int complain(const std::string& sentence, int code) {
  std::fprintf(stderr, "idem store: %s\n", printable(sentence).c_str());
  return code;
}

/// A kind that can be copied; the error is a sentence.
std::expected<const KnownKind*, std::string> kind_of(const std::string& url) {
  if (const auto known = check_store_url(url); !known) return std::unexpected(known.error());
  const KnownKind* const kind = known_kind_of(url);
  if (kind != nullptr) return kind;
  return std::unexpected(url == "memory:" ? "memory: keeps nothing that could be copied"
                                          : "name the truth of the hybrid store: what is in its "
                                            "cache is in the truth, too");
}

void print(const CopyRun& run, const CopyPass& pass) {
  const auto number = [](const char* name, std::uint64_t value) {
    std::printf("%s %llu\n", name, static_cast<unsigned long long>(value));
  };
  number("records", pass.records);
  number("evidence", pass.evidence);
  number("journal_lines", pass.journal_lines);
  if (pass.running != 0) number("running", pass.running);
  std::printf("digest %s\n", to_hex(pass.target).c_str());
  std::printf("store_id %s\n", run.target().id.c_str());
  if (!run.is_finished()) {
    std::puts(
        "The copy is not finished, and no start takes it: FROM is in use. For the rest, end its "
        "services and run this without --prepare.");
  } else if (run.is_closed()) {
    std::puts(
        "FROM is closed: no gateway, worker or service takes it any more. Write the URL of TO, and "
        "its store_id where you have one.");
  } else {
    std::puts(
        "FROM is still open: only one of the two may be used for the same clients, because retries "
        "of keys that came to the other one would run again.");
  }
}

void print_as_json(const CopyRun& run, const CopyPass& pass, const Order& order) {
  json::Writer out;
  out.begin_object();
  out.member("from", shown_store_url(order.from));
  out.member("to", shown_store_url(order.to));
  out.member("store_id", run.target().id);
  out.flag("finished", run.is_finished());
  out.flag("from_closed", run.is_closed());
  out.member("records", pass.records);
  out.member("put", pass.put);
  out.member("removed", pass.removed);
  out.member("running", pass.running);
  out.member("evidence", pass.evidence);
  out.member("journal_lines", pass.journal_lines);
  out.member("digest", to_hex(pass.target));
  out.end_object();
  const std::string text = out.take() + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

StoreCopyVerb::StoreCopyVerb(CLI::App* copy) : copy_(*copy) {
  copy_.add_option("from", from_, "URL of the store to be copied")->required();
  copy_.add_option("to", to_, "URL of the copy, a store that does not exist yet")->required();
  copy_.add_flag("--prepare", prepare_,
                 "copy what is there while gateways serve from FROM, as often as you like, so that "
                 "the copy itself is short; the copy is not finished by it");
  copy_.add_flag("--keep-source", keep_source_,
                 "leave FROM usable: for a copy that no client of FROM uses");
  copy_.add_option("--lost-copy", lost_copy_,
                   "the store_id of an earlier copy, which FROM was closed for and which is lost");
}

int StoreCopyVerb::run(bool json) const {
  // At the limit of a file's size a write fails, and the signal must not end the process.
  std::signal(SIGXFSZ, SIG_IGN);
  raise_descriptor_limit();
  if (prepare_ && keep_source_) {
    return complain("--prepare leaves FROM as it is: leave --keep-source out", usage);
  }
  const auto from = kind_of(from_);
  if (!from) return complain(from.error(), usage);
  const auto to = kind_of(to_);
  if (!to) return complain(to.error(), usage);
  const Order order{from_, to_, prepare_, keep_source_, lost_copy_};
  CopyRun run(order, **from, **to);
  const auto pass = run.run();
  if (!pass) return complain(pass.error().why, pass.error().code);
  if (json) {
    print_as_json(run, *pass, order);
  } else {
    print(run, *pass);
  }
  return done;
}

}  // namespace idem::cli
