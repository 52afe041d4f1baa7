#pragma once

#include <idem/store.hpp>

#include <expected>
#include <memory>
#include <string>

namespace idem {

/// Whether a URL names a store of this version, as open_store() takes it; nothing is opened. The
/// error is a sentence that repeats no more of the URL than its scheme.
std::expected<void, std::string> check_store_url(const std::string& url);

/// Opens a store by URL: `memory:`, which keeps nothing; `sqlite:PATH`, which makes the file where
/// there is none; `postgres://...`, libpq's URI, which makes the schema `idem` where there is none.
/// `migrate` upgrades an older schema, which is refused otherwise. The error is a sentence for
/// people that names the URL, without a password; nothing was changed then. Blocks until the store
/// is open.
std::expected<std::unique_ptr<Store>, std::string> open_store(const std::string& url,
                                                              const IdentitySettings& identity,
                                                              bool migrate = false);

}  // namespace idem
