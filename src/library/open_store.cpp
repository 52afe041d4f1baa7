#include <idem/assert.hpp>
#include <idem/open_store.hpp>

#include "core/record/which_store.hpp"
#include "library/hybrid_url.hpp"
#include "library/misuse.hpp"
#include "library/store_url.hpp"
#include "store/known_kinds.hpp"
#include "store/sealed_store.hpp"
#include "store/stores.hpp"

namespace idem {

inline namespace v0_1 {
namespace {

/// For a URL that check_store_url() accepts, other than `memory:` and `hybrid:`.
const StoreKind& linked_kind_of(const std::string& url) {
  const KnownKind* const known = known_kind_of(url);
  IDEM_ASSERT(known != nullptr && known->linked != nullptr);
  return *known->linked;
}

std::expected<void, std::string> check_kind(const KnownKind& known, const std::string& url) {
  if (known.linked != nullptr) return known.linked->check(url);
  return std::unexpected("this program was linked without idem::" + std::string(known.name) +
                         "; link it, or idem::idem, which is all of them");
}

/// "postgres://..."
std::string begun(const KnownKind& kind) { return scheme_of(kind) + "..."; }

std::string all_forms(const KnownKind& kind) {
  std::string further;
  for (const auto form : kind.forms.subspan(1)) {
    further += (further.empty() ? "" : ", ") + std::string(form);
  }
  return usual_form(kind) + (further.empty() ? "" : " (" + further + ")");
}

std::expected<void, std::string> check_hybrid(const std::string& url) {
  const auto parts = parse_hybrid_url(url);
  if (!parts) return std::unexpected("hybrid: " + parts.error());
  const KnownKind* const truth = known_kind_of(parts->truth);
  const KnownKind* const fast = known_kind_of(parts->fast);
  if (truth == nullptr || !truth->may_be_truth || fast == nullptr || !fast->may_be_fast) {
    return std::unexpected("hybrid: its truth is a " +
                           listed(&KnownKind::may_be_truth, begun, " or a ") + " and its fast a " +
                           listed(&KnownKind::may_be_fast, begun, " or a "));
  }
  if (auto known = check_store_url(parts->truth); !known) return known;
  return check_store_url(parts->fast);
}

}  // namespace

std::string shown_store_url(const std::string& url) {
  const KnownKind* const known = known_kind_of(url);
  if (url == "memory:" || (known != nullptr && known->is_path())) return url;
  const auto colon = url.find(':');
  if (colon == url.npos) return url;
  if (is_hybrid_url(url)) return "hybrid:?...";
  return url.substr(0, colon + 1) + (url.substr(colon).starts_with("://") ? "//..." : "");
}

bool marks_dispatch_apart(const std::string& url) {
  const KnownKind* const known = known_kind_of(url);
  return known != nullptr && known->marks_dispatch_apart;
}

bool has_transactions(const std::string& url) {
  const KnownKind* const known = known_kind_of(url);
  return known != nullptr && known->has_transactions;
}

std::string stores_with_transactions() {
  return listed(&KnownKind::has_transactions, title_of, " and ");
}

std::string store_url_forms() {
  return listed(nullptr, all_forms, ", ") + ", hybrid:?truth=URL&fast=URL or memory:";
}

std::expected<void, std::string> check_store_url(const std::string& url) {
  if (url == "memory:") return {};
  const auto wrong = [&](const std::string& sentence) {
    return std::unexpected("\"" + shown_store_url(url) + "\": " + sentence);
  };
  if (is_hybrid_url(url)) return check_hybrid(url);
  if (const KnownKind* const known = known_kind_of(url)) {
    const auto why =
        known->is_path() ? why_no_store_path(*known, path_of(*known, url)) : std::nullopt;
    if (why) return wrong(*why);
    auto checked = check_kind(*known, url);
    if (!checked) checked.error() = shown_store_url(url) + ": " + checked.error();
    return checked;
  }
  if (const auto meant = what_was_meant(url)) return wrong("is no URL of a store; " + *meant);
  return std::unexpected("\"" + shown_store_url(url) + "\" is no store of this version; write " +
                         listed(nullptr, usual_form, ", ") +
                         ", hybrid:?truth=URL&fast=URL or memory:");
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
    return linked_kind_of(parts.fast).open_before(std::move(*truth), parts.fast, options);
  }
  return linked_kind_of(url).open(url, identity, options);
}

/// The store's place once: a store in a file names its path itself.
std::string located(const std::string& url, const std::string& detail) {
  const KnownKind* const known = known_kind_of(url);
  const bool names_it = known != nullptr && known->is_path() &&
                        detail.starts_with(std::string(path_of(*known, url)) + ':');
  return names_it ? std::string(known->schemes.front()) + detail
                  : shown_store_url(url) + ": " + detail;
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
  return std::unexpected(located(url, opened.error().detail));
}

std::expected<OpenedStore, std::string> migrate_store(const std::string& url) {
  if (const auto known = check_store_url(url); !known) return std::unexpected(known.error());
  if (is_hybrid_url(url)) return migrate_store(parse_hybrid_url(url)->truth);
  if (url == "memory:") return OpenedStore{};
  const StoreKind& kind = linked_kind_of(url);
  if (kind.migrate == nullptr) return OpenedStore{};  // It has no schema.
  auto migrated = kind.migrate(url);
  if (migrated) return std::move(*migrated);
  return std::unexpected(located(url, migrated.error().detail));
}

}  // namespace v0_1

}  // namespace idem
