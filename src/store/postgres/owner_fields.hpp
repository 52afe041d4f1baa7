#pragma once

#include <idem/store.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace idem::postgres {

/// The members of all owners' verbs; each verb sets those that it has.
struct OwnerFields {
  std::string_view verb{};
  RecordId id{};
  AttemptRef attempt{};
  std::optional<Millis> lease{};
  std::string_view recovery_point{};
  std::optional<std::string> head{};  ///< stored_response_codec.hpp
  std::optional<std::string_view> body{};
  std::string_view reference{};
  std::string_view basis = "proven";
  std::string_view error_code{};
  std::optional<Millis> retry_in{};
  std::optional<Millis> reconcile_in{};
};

/// Valid as long as `call`, which is an owner's verb.
OwnerFields owner_fields(const StoreCall& call);

}  // namespace idem::postgres
