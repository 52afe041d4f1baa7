#pragma once

#include <idem/log.hpp>
#include <idem/store.hpp>

#include <array>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

/// @file
/// Stores by URL.
namespace idem::inline v0_1 {

/// Checks whether open_store() accepts a URL; opens nothing. The error is a sentence that repeats
/// no more of the URL than its scheme.
[[nodiscard]] std::expected<void, std::string> check_store_url(const std::string& url);

/// The part of a store's URL that may be shown: all of it if it holds no password, else its scheme.
std::string shown_store_url(const std::string& url);

/// True for a store on which the dispatch mark is by default a step of its own, because each
/// durable step is a network round trip (protocol.md §11).
bool marks_dispatch_apart(const std::string& url);

/// True for a store that commits a service's rows and messages together with its record
/// (<idem/transaction.hpp>, <idem/outbox.hpp>).
bool has_transactions(const std::string& url);
/// Those stores, for people: "SQLite, PostgreSQL and MySQL".
std::string stores_with_transactions();
/// How the URL of each store is written, for people: "sqlite:PATH, ... or memory:".
std::string store_url_forms();

/// `url` with each relative path in it (the path of a store, files of certificates and
/// passwords) resolved against `folder`, which is absolute. Returns a URL that check_store_url()
/// refuses unchanged.
std::string absolute_store_url(const std::string& url, const std::string& folder);

struct CopiedIdentity;

/// Which store may be opened at a URL. A wrong or new store has no records of the keys that ran.
struct WhichStore {
  /// The OpenedStore::id that it must have: another store, or none yet, is refused. Empty: any.
  std::string id{};
  /// False: a missing store is an error, and none is made.
  bool make = true;
  /// With `make = false`: opens it to be looked at. Settings and secrets are judged as a start
  /// judges them, and nothing is recorded. On Redis and DynamoDB they are judged as if the store
  /// had records under its present names and secret, and none under earlier ones.
  bool look = false;
  /// Called, perhaps on the store's thread, before open_store() returns an error that a repetition
  /// with the same settings does not change while those records live: it is another store, or the
  /// settings would hide its records.
  std::function<void()> contradicted{};
  /// Of `idem store copy`; null for everybody else.
  std::shared_ptr<CopiedIdentity> copied{};
};

/// The store that was opened.
struct OpenedStore {
  /// Made with the store and never changed: hexadecimal digits as 8-4-4-4-12. Empty: the store
  /// keeps nothing.
  std::string id{};
  /// For people, without a password: an absolute path, or host and database.
  std::string place{};
  /// The store did not exist and was made now.
  bool is_new = false;
};

/// How a store keeps requests and answers: encrypted, each under a key of its own, which is wrapped
/// by a key from a secret (docs/encryption.md). All openers of a store need the same secrets.
struct EncryptionSettings {
  /// Newest first: the first one seals, all of them open. Empty: nothing is sealed, and a sealed
  /// answer is `damaged` to this opener.
  std::vector<std::array<std::uint8_t, 32>> secrets{};
  /// False: an answer or a request that lies there in clear is `damaged`. Anyone who can write to
  /// the store could have put it there. True: records from before are still replayed.
  bool accept_clear = true;
  /// The keys of a scope's answers and requests are wrapped by a key of that scope, which lies in
  /// the store, wrapped by the newest secret's. Deleting it makes all of them unreadable.
  bool key_per_scope = false;
};

/// Bounds of OpenOptions::cache_bytes.
inline constexpr std::size_t store_cache_bytes_min = 1UL << 20U;
inline constexpr std::size_t store_cache_bytes_max = 1UL << 40U;

/// Bound of OpenOptions::shards.
inline constexpr std::uint32_t store_shards_max = 64;

/// How a store is opened.
struct OpenOptions {
  /// Upgrade an older schema, which is refused otherwise.
  bool migrate = false;
  /// Receives sentences about server settings that may lose data. On the store's thread, also
  /// later.
  std::function<void(const std::string&)> warn{};
  /// Which store it must be.
  WhichStore which{};
  /// Called once, before open_store() returns, with the opened store; perhaps on its thread.
  std::function<void(const OpenedStore&)> opened{};
  /// If `opened` is null, receives `store_new` for a store that was made now, with its absolute
  /// place: a relative path that is resolved in another folder finds another store, without the
  /// keys that ran. Null: to stderr.
  LogSink log{};
  /// See EncryptionSettings.
  EncryptionSettings encryption{};
  /// How much memory `embedded:` may use for what it would read from the disk otherwise;
  /// other stores have no use for it. 11 bits of it for each record keep a look for a key at
  /// one read.
  std::size_t cache_bytes = 256UL << 20U;
  /// Among how many shards `embedded:` spreads the records, each with a log and a thread of its
  /// own; other stores have no use for it. If it differs from the store's number, the store moves
  /// records before it is open, some 80,000 a second, and is refused if it cannot read one that it
  /// has to move. 0: the store's own number; a new one gets one for each four processors.
  std::uint32_t shards = 0;
};

/// Opens a store by URL: `memory:`, which keeps nothing; `embedded:PATH`, which makes a missing
/// directory; `sqlite:PATH`, which makes a missing file;
/// `postgres://...`, libpq's URI, which makes a missing schema `idem`; `mysql://...`, which makes
/// missing tables; `redis://...`, `rediss://...`, `redis+cluster://...`, `redis+sentinel://...`;
/// `dynamodb://...`; `hybrid:?truth=URL&fast=URL`.
/// Blocks until the store is open. The error is a sentence for people that names the URL without a
/// password; nothing was changed then. A program can open only the stores that it was linked with
/// (CMake: idem::sqlite, idem::postgres and so on; idem::idem is all of them).
[[nodiscard]] std::expected<std::unique_ptr<Store>, std::string> open_store(
    const std::string& url, const IdentitySettings& identity, const OpenOptions& options = {});

/// Upgrades an older schema of the store at `url`. Makes a missing store; the first gateway or
/// service then chooses its settings. Does nothing to a store without a schema. The error is as
/// open_store()'s, and nothing was changed then.
[[nodiscard]] std::expected<OpenedStore, std::string> migrate_store(const std::string& url);

}  // namespace idem::inline v0_1
