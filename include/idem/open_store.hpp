#pragma once

#include <idem/store.hpp>

#include <expected>
#include <functional>
#include <memory>
#include <string>

/// @file
/// Stores by URL.
namespace idem::inline v0_1 {

/// Whether a URL names a store of this version, as open_store() takes it; nothing is opened. The
/// error is a sentence that repeats no more of the URL than its scheme.
[[nodiscard]] std::expected<void, std::string> check_store_url(const std::string& url);

/// What may be shown of a store's URL: all of it where it holds no password, else its scheme.
std::string shown_store_url(const std::string& url);

/// True for a store whose every durable step is a trip over the network: there the mark that a
/// request is about to leave is a step of its own unless something else is said (protocol.md §11).
bool marks_dispatch_apart(const std::string& url);

/// `url` with each relative path in it (the embedded store's file, files of certificates and
/// passwords) taken from `folder`, which is absolute. What check_store_url() refuses stays as it
/// is.
std::string absolute_store_url(const std::string& url, const std::string& folder);

/// Which store may be opened at its URL. Another one knows nothing of the keys that ran, and a new
/// one knows of none.
struct WhichStore {
  /// Its id, as OpenedStore tells it. Another store, or none yet, is refused. Empty: any.
  std::string id{};
  /// False: where there is no store, none is made.
  bool make = true;
};

/// Which store was opened.
struct OpenedStore {
  /// The store's own, made with it and never changed: hexadecimal digits as 8-4-4-4-12. Empty: what
  /// keeps nothing has none.
  std::string id{};
  /// For people, without a password: an absolute path, or host and database.
  std::string place{};
  /// There was none, so it was made now.
  bool is_new = false;
};

/// How a store is opened.
struct OpenOptions {
  /// Upgrade an older schema, which is refused otherwise.
  bool migrate = false;
  /// Told of settings of a server that make it forget: sentences. On the store's thread, also
  /// later.
  std::function<void(const std::string&)> warn{};
  /// Which store it must be.
  WhichStore which{};
  /// Told once, before open_store() returns, which store it is; perhaps on the store's thread.
  std::function<void(const OpenedStore&)> opened{};
};

/// Opens a store by URL: `memory:`, which keeps nothing; `sqlite:PATH`, which makes the file where
/// there is none; `postgres://...`, libpq's URI, which makes the schema `idem` where there is none;
/// `redis://...`, `rediss://...`, `redis+cluster://...`, `redis+sentinel://...`. The error is a
/// sentence for people that names the URL, without a password; nothing was changed then. Blocks
/// until the store is open. Of the stores only those can be opened that the program was linked with
/// (CMake: idem::sqlite, idem::postgres, idem::redis; idem::idem is all of them).
[[nodiscard]] std::expected<std::unique_ptr<Store>, std::string> open_store(
    const std::string& url, const IdentitySettings& identity, const OpenOptions& options = {});

/// Upgrades the schema of the store at `url`, where that is older; makes the store, where there is
/// none, whose settings the first gateway or service then chooses. A store without a schema is left
/// alone. The error is as open_store()'s, and nothing was changed then.
[[nodiscard]] std::expected<OpenedStore, std::string> migrate_store(const std::string& url);

}  // namespace idem::inline v0_1
