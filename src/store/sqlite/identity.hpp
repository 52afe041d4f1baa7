#pragma once

#include "store/sqlite/meta.hpp"

#include <idem/open_store.hpp>

#include <expected>
#include <string>

namespace idem::sqlite {

/// What IdentitySettings promises about a start: at the first one makes and keeps the store's own
/// secret and the settings; later refuses, with a sentence, settings and secrets with which a live
/// record would not be found. Another secret or, in a store without live records, other settings
/// begin a new generation. Part of the transaction that is open.
std::expected<Identity, std::string> settle_identity(sqlite3* db, Meta& meta,
                                                     const IdentitySettings& asked,
                                                     const WhichStore& which, StoreTime now);

/// The store's id, which the first start makes; refused with a sentence where `which` does not
/// allow it. To be asked before settle_identity(), in the same transaction.
std::expected<OpenedStore, std::string> settle_store_id(Meta& meta, const WhichStore& which);

}  // namespace idem::sqlite
