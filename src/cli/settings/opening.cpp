#include "cli/settings/opening.hpp"

#include "core/record/restore_note.hpp"
#include "store/file_access.hpp"
#include "store/known_kinds.hpp"
#include "store/migration.hpp"

#include <idem/limits.hpp>
#include <idem/log.hpp>
#include <idem/open_store.hpp>
#include <idem/store_wait.hpp>

#include <atomic>
#include <filesystem>
#include <memory>
#include <numeric>

namespace idem::cli {
namespace {

/// From this number on a shared store counts by an estimate.
constexpr std::uint64_t counted_records_max = 100'000;

/// "records": a number, unless it is none.
LogField records_field(Store& store, const OpenedStore& opened, const std::string& url) {
  if (opened.is_new) return {"records", 0};
  const auto census = ask_and_wait(store, Count{});
  if (!census) return {"records", "unknown"};
  const auto& by_state = census->by_state;
  const auto all = std::accumulate(by_state.begin(), by_state.end(), std::uint64_t{0});
  const bool is_estimate = all > counted_records_max && !path_in(url);
  return {is_estimate ? "records_about" : "records", all};
}

/// At each start: retries of the missing keys may still come.
void tell_of_restore(Store& store, const LogSink& log) {
  const auto read = ask_and_wait(store, ReadLines{.journal = std::string(restores_journal),
                                                  .limit = limits::journal_read_lines_max});
  if (!read) return;
  const auto last = last_restore(read->lines);
  if (!last) return;
  log(LogLevel::warning, "store_restored",
      {{"missing", span_of(*last)},
       {"open_in_copy", last->open()},
       {"reason", sentences_of(*last)}});
}

}  // namespace

void log_warnings(const ReadSettings& read, const LogSink& log) {
  for (const auto& warning : read.warnings) {
    log(LogLevel::warning, "settings_warning", {{"reason", warning}});
  }
}

IdentitySettings identity_settings(const GatewayOptions& options) {
  return {.key_scope = std::string(name_of(options.settings.key_scope)),
          .scope_source = options.settings.scope.text,
          .secrets = options.secrets};
}

FileJudgement judge_store_file(const StoreFileKind& kind, const GatewayOptions& options,
                               LookDepth depth) {
  using Kind = StoreFileError::Kind;
  const std::string path = path_in(options.store).value();
  const std::string& wanted_id = options.store_id;
  FileJudgement judged{.report = kind.look(path, identity_settings(options), depth),
                       .why_refused = {}};
  if (!judged.report) {
    const StoreFileError& error = judged.report.error();
    const bool makes_one = error.kind == Kind::not_found || error.kind == Kind::empty;
    // The start upgrades an older schema, and a look does not.
    const bool upgrades = options.migrate && error.why.contains(needs_migration);
    if (makes_one && !wanted_id.empty()) {
      judged.why_refused = path + " has no store, and store_id wants " + wanted_id;
    } else if (!makes_one && !upgrades) {
      judged.why_refused = error.why;
    }
    return judged;
  }
  const StoreFileReport& report = *judged.report;
  const bool is_readable = !report.store_id.empty();
  if (is_readable && !wanted_id.empty() && wanted_id != report.store_id) {
    judged.why_refused = path + " is the store " + report.store_id + ", and store_id wants " +
                         wanted_id + ": write the path of that store";
  } else if (!report.contradiction.empty()) {
    judged.why_refused = path + ": " + report.contradiction;
  }
  return judged;
}

StoreJudgement judge_store(const GatewayOptions& options, bool asks_store) {
  const KnownKind* const kind = known_kind_of(options.store);
  const IdentitySettings identity = identity_settings(options);
  if (kind != nullptr && kind->linked != nullptr && kind->linked->file != nullptr) {
    const auto depth = asks_store ? LookDepth::whole : LookDepth::identity;
    auto judged = judge_store_file(*kind->linked->file, options, depth);
    if (judged.report) return {std::move(judged.why_refused), std::move(judged.report->doubts)};
    // Settings may be checked by a user who may not read the store.
    if (judged.report.error().kind == StoreFileError::Kind::failed && !asks_store) return {};
    return {std::move(judged.why_refused), {}};
  }
  if (!asks_store || options.store == "memory:") return {};
  const auto store = open_store(options.store, identity,
                                {.warn = [](const std::string&) {},
                                 .which = {.id = options.store_id, .make = false, .look = true},
                                 .opened = [](const OpenedStore&) {},
                                 .encryption = options.encryption});
  if (store) return {};
  // The start upgrades an older schema, and a look does not.
  if (options.migrate && store.error().contains(needs_migration)) return {};
  return {store.error(), {}};
}

std::expected<void, StartFailure> adopt_routes(Store& store, const std::string& url,
                                               gateway::GatewaySettings& settings) {
  auto adopted = ask_and_wait(
      store, AdoptRoutes{gateway::names_of(settings.routes.all()), settings.key_headers});
  if (!adopted) {
    return std::unexpected(StartFailure{shown_store_url(url) + ": " + adopted.error().detail});
  }
  if (!adopted->why_not.empty()) {
    return std::unexpected(StartFailure{"routes: " + adopted->why_not});
  }
  settings.generation = adopted->generation;
  return {};
}

std::expected<std::unique_ptr<Store>, StartFailure> open_configured_store(
    const GatewayOptions& options, bool make, const LogSink& log) {
  const auto contradicted = std::make_shared<std::atomic<bool>>(false);
  const auto warn = [log](const std::string& warning) {
    log(LogLevel::warning, "store_warning", {{"reason", warning}});
  };
  if (const auto path = path_in(options.store)) {
    if (const auto why = why_not_as_root(*path)) warn(*why);
  }
  OpenedStore opened;
  auto store = open_store(options.store, identity_settings(options),
                          {.migrate = options.migrate,
                           .warn = warn,
                           .which = {.id = options.store_id,
                                     .make = make,
                                     .contradicted = [contradicted] { *contradicted = true; }},
                           .opened = [&](const OpenedStore& found) { opened = found; },
                           .log = log,
                           .encryption = options.encryption,
                           .cache_bytes = options.store_cache_bytes,
                           .shards = options.store_shards});
  if (!store) {
    return std::unexpected(StartFailure{std::move(store.error()), *contradicted ? usage : failed});
  }
  const auto records = records_field(**store, opened, options.store);
  if (opened.is_new) {
    log(LogLevel::warning, "store_new",
        {{"place", opened.place},
         {"reason",
          opened.id.empty()
              ? "it stores nothing on disk: after the next start every key runs again"
              : "there was no store, so an empty one was created: it knows no earlier key. If you "
                "expected records, stop the process and write the URL of their store"}});
  }
  log(LogLevel::info, "store_opened", {{"place", opened.place}, {"store_id", opened.id}, records});
  if (!opened.is_new) tell_of_restore(**store, log);
  return std::move(*store);
}

std::expected<std::unique_ptr<http::SpillSpace>, std::string> open_spill_folder(
    const GatewayFlags& given, const GatewayOptions& options) {
  auto space = http::SpillSpace::open(options.spill_dir);
  if (space) return space;
  const std::string place =
      given.spill_dir.given
          ? given.spill_dir.place.text()
          : "spill_dir is not given, so that it is the folder of the store; it may name "
            "another";
  const std::string made = (std::filesystem::path(options.spill_dir) / "body").string();
  return std::unexpected(place + ": " + with_advice(space.error(), made));
}

}  // namespace idem::cli
