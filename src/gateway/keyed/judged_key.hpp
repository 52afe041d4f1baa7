#pragma once

#include "core/exchange/problem.hpp"
#include "gateway/keyed/key_age.hpp"
#include "loop/loop.hpp"

#include <idem/key.hpp>
#include <idem/store.hpp>

#include <expected>
#include <optional>
#include <string>

/// What the rules for keys say about a request (protocol.md §8).
namespace idem::gateway {

/// All lines of all accepted names: the parser refuses more than one (P34). A field that a server
/// may confuse with a key's counts beside a key: the upstream might read that other key.
std::expected<std::string, KeyError> read_key(const http::RequestHead& head,
                                              const GatewaySettings& settings,
                                              const KeyOptions& options);

struct JudgedKey {
  std::expected<std::string, KeyError> key;
  /// Why it may begin no new record; a record that it has already answers anyway.
  std::optional<Problem> new_key_rejection{};
  /// Even that record may not answer: `new_key_rejection` does.
  bool is_refused = false;
};
JudgedKey judge_key(const http::RequestHead& head, const GatewaySettings& settings,
                    const Route& route, ClientTime now);

/// A key that may begin no new record, if it has one: the rules for keys apply to new records only.
/// For a key that has a record, "use a new key" would be wrong advice. All arguments outlive it.
using ExistingKey = std::expected<std::optional<std::string>, StoreError>;
Task<ExistingKey> existing_key(Loop& loop, Store& store, const http::RequestHead& head,
                               const GatewaySettings& settings, const Route& route,
                               const std::string& scope);

}  // namespace idem::gateway
