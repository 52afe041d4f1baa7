#include "cli/settings/opening.hpp"

#include <idem/log.hpp>
#include <idem/open_store.hpp>
#include <idem/store_wait.hpp>

#include <numeric>

namespace idem::cli {
namespace {

/// From this number on a shared store counts by an estimate.
constexpr std::uint64_t counted_records_max = 100'000;

/// "records": a number, unless it is none.
LogField records_of(Store& store, const OpenedStore& opened, const std::string& url) {
  if (opened.is_new) return {"records", 0};
  const auto census = ask_and_wait(store, Count{});
  if (!census) return {"records", "unknown"};
  const auto& by_state = census->by_state;
  const auto all = std::accumulate(by_state.begin(), by_state.end(), std::uint64_t{0});
  const bool is_estimate = all > counted_records_max && !url.starts_with("sqlite:");
  return {is_estimate ? "records_about" : "records", all};
}

}  // namespace

void log_warnings(const ReadSettings& read, const LogSink& log) {
  for (const auto& warning : read.warnings) {
    log(LogLevel::warning, "settings_warning", {{"reason", warning}});
  }
}

std::expected<std::unique_ptr<Store>, std::string> open_configured_store(
    const GatewayOptions& options, bool make, const LogSink& log) {
  const IdentitySettings identity{.key_scope = std::string(name_of(options.settings.key_scope)),
                                  .scope_source = options.settings.scope.text,
                                  .secrets = options.secrets};
  const auto warn = [log](const std::string& warning) {
    log(LogLevel::warning, "store_warning", {{"reason", warning}});
  };
  OpenedStore opened;
  auto store = open_store(options.store, identity,
                          {.migrate = options.migrate,
                           .warn = warn,
                           .which = {.id = options.store_id, .make = make},
                           .opened = [&](const OpenedStore& found) { opened = found; },
                           .encryption = options.encryption});
  if (!store) return store;
  const auto records = records_of(**store, opened, options.store);
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
  return store;
}

}  // namespace idem::cli
