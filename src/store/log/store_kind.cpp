#include "store/store_kind.hpp"

#include "core/bytes/rfc3339.hpp"
#include "store/log/backup_store.hpp"
#include "store/log/check_store.hpp"
#include "store/log/log_store.hpp"
#include "store/log/look.hpp"
#include "store/log/recover_store.hpp"
#include "store/log/reindex_store.hpp"

#include <algorithm>
#include <thread>

namespace idem {
namespace {

constexpr std::string_view scheme = "embedded:";

std::expected<void, std::string> check(const std::string&) { return {}; }

/// Why four: docs/internals/log.md.
std::uint32_t shards_of_new() {
  constexpr std::uint32_t processors_of_one = 4;
  return std::clamp(std::thread::hardware_concurrency() / processors_of_one, 1U, store_shards_max);
}

std::expected<std::unique_ptr<Store>, StoreError> open(const std::string& url,
                                                       const IdentitySettings& identity,
                                                       const OpenOptions& options) {
  LogOptions how{.host = {}, .which = options.which, .opened = options.opened};
  how.sizes.cache_bytes = options.cache_bytes;
  how.shards = options.shards;
  how.shards_of_new = shards_of_new();
  if (options.log) {
    how.cut_off = [&options](auto newest_record, auto last_clean_stop) {
      const auto text = [](const std::optional<StoreTime>& moment) {
        return moment ? to_rfc3339(*moment) : std::string("never");
      };
      options.log(
          LogLevel::warning, "store_not_closed",
          {{"newest_record", text(newest_record)}, {"last_clean_stop", text(last_clean_stop)}});
    };
    how.reindexed = [&options](const std::string& what) {
      options.log(LogLevel::warning, "store_reindexed", {{"what", what}});
    };
    how.moving = [&options](std::uint32_t shards, std::uint64_t moved) {
      options.log(LogLevel::info, "store_shards_moving", {{"shards", shards}, {"records", moved}});
    };
  }
  return open_log(url.substr(scheme.size()), identity, how);
}

constexpr StoreFileKind file{&segments::check_store,   &segments::identify_store,
                             &segments::back_up_store, &segments::restore_store,
                             &segments::recover_store, &segments::reindex_store};

}  // namespace

extern "C" {
extern const StoreKind idem_kind_embedded;
const StoreKind idem_kind_embedded{&check, &open, nullptr, nullptr, &file};
}

}  // namespace idem
