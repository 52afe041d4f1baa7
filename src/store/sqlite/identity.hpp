#pragma once

#include "store/sqlite/meta.hpp"

#include <idem/open_store.hpp>

#include <expected>
#include <string>

namespace idem::sqlite {

/// Keeps what IdentitySettings promises about a start. The first start makes and keeps the store's
/// own secret and the settings. A later one refuses, with a sentence, settings and secrets that
/// would hide a live record. Another secret or, in a store without live records, other settings
/// begin a new generation. Part of the open transaction.
std::expected<Identity, std::string> settle_identity(sqlite3* db, Meta& meta,
                                                     const IdentitySettings& asked,
                                                     const WhichStore& which, StoreTime now);

/// Why a start at `now` with these settings would be refused; empty: it would not. Changes nothing.
/// `db`: the file's records, which may be damaged; `meta_db`: a sound copy of its other tables.
std::string contradiction(sqlite3* db, sqlite3* meta_db, Meta& meta, const IdentitySettings& asked,
                          StoreTime now);

/// The store's id, which the first start makes; an error, a sentence, if `which` does not allow it.
/// Must come before settle_identity(), in the same transaction.
std::expected<OpenedStore, std::string> settle_store_id(Meta& meta, const WhichStore& which);

}  // namespace idem::sqlite
