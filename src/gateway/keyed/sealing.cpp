#include "gateway/keyed/sealing.hpp"

#include "core/bytes/seal.hpp"

#include <idem/fingerprint.hpp>

#include <algorithm>

namespace idem::gateway {
namespace {

std::string key_of_scope(std::string_view scope) { return "client key of " + std::string(scope); }

}  // namespace

std::vector<Secret> sealing_secrets(const Identity& identity, const GatewaySettings& settings) {
  std::vector<Secret> secrets = settings.async_secrets;
  secrets.push_back(identity.secret);
  secrets.insert(secrets.end(), identity.older.begin(), identity.older.end());
  return secrets;
}

std::string seal_key(std::string_view key, std::string_view scope, const Identity& identity,
                     const GatewaySettings& settings) {
  return seal(sealing_secrets(identity, settings).front(), key, key_of_scope(scope));
}

std::optional<std::string> open_key(const Record& record, const Identity& identity,
                                    const GatewaySettings& settings) {
  if (record.sealed_key.empty()) return std::nullopt;
  auto key =
      unseal(sealing_secrets(identity, settings), record.sealed_key, key_of_scope(record.scope));
  // An attacker who can write to the store must not have us ask about one record and settle
  // another.
  if (key && !is_key_of(record, *key, identity, settings.key_scope)) key.reset();
  return key;
}

bool is_key_of(const Record& record, std::string_view key, const Identity& identity,
               KeyScope key_scope) {
  const std::string operation = key_scope == KeyScope::tenant ? "" : record.operation;
  const auto has_made_it = [&](const Secret& secret) {
    return record_id(secret, record.scope, operation, key) == record.id;
  };
  return has_made_it(identity.secret) || std::ranges::any_of(identity.older, has_made_it);
}

}  // namespace idem::gateway
