#pragma once

#include "core/exchange/problem.hpp"

#include <string_view>

namespace idem::gateway {

/// What names a keyed request's record and distinguishes the request from others, beside its head.
struct RequestParts {
  std::string_view scope;
  std::string_view operation;
  std::string_view key;
  std::string_view body;
  /// Why the key may begin no new record; null: it may.
  const Problem* new_key_rejection = nullptr;
};

}  // namespace idem::gateway
