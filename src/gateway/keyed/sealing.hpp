#pragma once

#include "gateway/settings.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Seals what only a holder of the secrets may read in a store: credentials of stored requests, and
/// clients' keys. Under `async.secret_files`; without those under the secret of the record ids, so
/// that a key is no easier to read than they are.
namespace idem::gateway {

/// Newest first: the first seals, all of them open.
std::vector<Secret> sealing_secrets(const Identity& identity, const GatewaySettings& settings);

/// A key for Record::sealed_key, bound to this scope.
std::string seal_key(std::string_view key, std::string_view scope, const Identity& identity,
                     const GatewaySettings& settings);

/// The key that is kept with the record; none where there is none, where its secret is gone, or
/// where it is not this record's.
std::optional<std::string> open_key(const Record& record, const Identity& identity,
                                    const GatewaySettings& settings);

/// True where the record's id was made from this key.
bool is_key_of(const Record& record, std::string_view key, const Identity& identity,
               KeyScope key_scope);

}  // namespace idem::gateway
