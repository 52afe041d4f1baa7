#pragma once

#include "gateway/settings.hpp"

#include <idem/store.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What may lie in a store and be read only by who has its secrets: credentials of stored requests,
/// and client's keys. Under `async.secret_files`; without those under the secret that record ids
/// are made with, so that a key is no easier to read than they are.
namespace idem::gateway {

/// Newest first: what seals, and what may have sealed.
std::vector<Secret> sealing_secrets(const Identity& identity, const GatewaySettings& settings);

/// A key for Record::sealed_key: of this scope, and of no other's record.
std::string seal_key(std::string_view key, std::string_view scope, const Identity& identity,
                     const GatewaySettings& settings);

/// The key that was kept with the record; none where none was, where it was sealed under secrets
/// that are gone, or where it is not this record's.
std::optional<std::string> open_key(const Record& record, const Identity& identity,
                                    const GatewaySettings& settings);

/// True where a record of this scope and operation has this id because of this key.
bool is_key_of(const Record& record, std::string_view key, const Identity& identity,
               KeyScope key_scope);

}  // namespace idem::gateway
