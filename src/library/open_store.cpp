#include <idem/assert.hpp>
#include <idem/open_store.hpp>

#include "core/record/which_store.hpp"
#include "library/hybrid_url.hpp"
#include "library/misuse.hpp"
#include "library/store_url.hpp"
#include "store/sealed_store.hpp"
#include "store/store_kind.hpp"
#include "store/stores.hpp"

namespace idem {

// Weak: their addresses are null where the program was linked without them.
extern "C" {
[[gnu::weak]] extern const StoreKind idem_kind_sqlite;
[[gnu::weak]] extern const StoreKind idem_kind_postgres;
[[gnu::weak]] extern const StoreKind idem_kind_redis;
}

inline namespace v0_1 {
namespace {

constexpr std::string_view sqlite = "sqlite:";

struct Linked {
  const char* component;  ///< Its name in CMake.
  const StoreKind* kind;  ///< Null: not linked.
};

/// For a URL that check_store_url() accepts, or that it is about to ask, other than `memory:` and
/// `hybrid:`.
Linked kind_of(const std::string& url) {
  if (is_postgres_url(url)) return {"idem::postgres", &idem_kind_postgres};
  if (is_redis_url(url)) return {"idem::redis", &idem_kind_redis};
  IDEM_ASSERT(url.starts_with(sqlite));
  return {"idem::sqlite", &idem_kind_sqlite};
}

std::expected<void, std::string> check_kind(const std::string& url) {
  const auto [component, kind] = kind_of(url);
  if (kind != nullptr) return kind->check(url);
  return std::unexpected(std::string("this program was linked without ") + component +
                         "; link it, or idem::idem, which is all of them");
}

}  // namespace

std::string shown_store_url(const std::string& url) {
  if (url == "memory:" || url.starts_with(sqlite)) return url;
  const auto colon = url.find(':');
  if (colon == url.npos) return url;
  if (is_hybrid_url(url)) return "hybrid:?...";
  return url.substr(0, colon + 1) + (url.substr(colon).starts_with("://") ? "//..." : "");
}

bool marks_dispatch_apart(const std::string& url) { return is_redis_url(url); }

std::expected<void, std::string> check_store_url(const std::string& url) {
  if (url == "memory:") return {};
  const auto wrong = [&](const std::string& sentence) {
    return std::unexpected("\"" + shown_store_url(url) + "\": " + sentence);
  };
  if (url.starts_with(sqlite)) {
    const auto why = why_no_store_path(std::string_view(url).substr(sqlite.size()));
    if (why) return wrong(*why);
  }
  if (is_hybrid_url(url)) {
    const auto parts = parse_hybrid_url(url);
    if (!parts) return std::unexpected("hybrid: " + parts.error());
    if (!is_postgres_url(parts->truth) || !is_redis_url(parts->fast)) {
      return std::unexpected("hybrid: its truth is a postgres://... and its fast a redis://...");
    }
    if (const auto truth = check_store_url(parts->truth); !truth) return truth;
    return check_store_url(parts->fast);
  }
  if (is_postgres_url(url) || is_redis_url(url) || url.starts_with(sqlite)) {
    auto known = check_kind(url);
    if (!known) known.error() = shown_store_url(url) + ": " + known.error();
    return known;
  }
  if (const auto meant = what_was_meant(url)) return wrong("is no URL of a store; " + *meant);
  return std::unexpected("\"" + shown_store_url(url) +
                         "\" is no store of this version; write sqlite:PATH, "
                         "postgres://USER@HOST/DATABASE, redis://HOST, "
                         "hybrid:?truth=URL&fast=URL or memory:");
}

namespace {

std::expected<std::unique_ptr<Store>, StoreError> open_known(const std::string& url,
                                                             const IdentitySettings& identity,
                                                             const OpenOptions& options) {
  if (url == "memory:") {
    // It begins empty each time.
    if (auto why = why_not(options.which, std::nullopt)) {
      return std::unexpected(StoreError{StoreError::Code::refused, std::move(*why)});
    }
    if (options.opened) options.opened({.place = "memory", .is_new = true});
    return open_memory(identity);
  }
  if (is_hybrid_url(url)) {
    const HybridUrl parts = parse_hybrid_url(url).value();
    auto truth = open_known(parts.truth, identity, options);
    if (!truth) return truth;
    return kind_of(parts.fast).kind->open_before(std::move(*truth), parts.fast, options);
  }
  return kind_of(url).kind->open(url, identity, options);
}

/// For a service that does not look itself. A store that keeps nothing is new each time.
void log_new(const OpenedStore& store, const LogSink& log) {
  library::log_or_stderr(log)(
      LogLevel::warning, "store_new",
      {{"place", store.place},
       {"store_id", store.id},
       {"reason",
        "there was no store, so an empty one was created: it knows no earlier key. If you expected "
        "records, end the process and write the URL of their store, with an absolute path"}});
}

}  // namespace

std::expected<std::unique_ptr<Store>, std::string> open_store(const std::string& url,
                                                              const IdentitySettings& identity,
                                                              const OpenOptions& options) {
  if (const auto known = check_store_url(url); !known) return std::unexpected(known.error());
  OpenOptions how = options;
  OpenedStore found;
  if (!how.opened) how.opened = [&found](const OpenedStore& store) { found = store; };
  auto opened = open_known(url, identity, how);
  if (opened && found.is_new && !found.id.empty()) log_new(found, options.log);
  if (opened) return make_sealed(std::move(*opened), options.encryption);
  return std::unexpected(shown_store_url(url) + ": " + opened.error().detail);
}

std::expected<OpenedStore, std::string> migrate_store(const std::string& url) {
  if (const auto known = check_store_url(url); !known) return std::unexpected(known.error());
  if (is_hybrid_url(url)) return migrate_store(parse_hybrid_url(url)->truth);
  if (url == "memory:") return OpenedStore{};
  const StoreKind& kind = *kind_of(url).kind;
  if (kind.migrate == nullptr) return OpenedStore{};  // It has no schema.
  auto migrated = kind.migrate(url);
  if (migrated) return std::move(*migrated);
  return std::unexpected(shown_store_url(url) + ": " + migrated.error().detail);
}

}  // namespace v0_1

}  // namespace idem
