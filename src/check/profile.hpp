#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::check {

/// What an API has to answer, by the document that it claims to follow. A member that is empty or
/// `any` demands nothing but what is safe.
struct Profile {
  std::string name{};      ///< "ietf", "stripe", "acp", "ucp", "custom"
  std::string document{};  ///< Its title, for reports.

  std::vector<int> misuse{};     ///< Statuses of the same key with another request; empty: any 4xx.
  std::vector<int> in_flight{};  ///< Statuses of a repeat while the first runs; empty: any 4xx.
  std::vector<int> missing{};    ///< Statuses of a request without a key; empty: any.
  bool key_required = false;     ///< A request without a key must not run.
  bool accepts_strings = false;  ///< `"abc"` is a key.
  bool refuses_lists = false;    ///< Two keys are refused, not merely kept apart.
  std::size_t key_length = 0;    ///< Keys of so many characters are accepted; 0: not said.
  std::string marker{};        ///< The field that only a replay has, as `Name: value`; empty: none.
  bool echoes_key = false;     ///< Each answer has the key.
  bool advises_retry = false;  ///< A refusal in flight has Retry-After.
  bool equal_by_meaning = false;  ///< Requests are equal if their JSON is.

  enum class Errors : std::uint8_t { any, replayed, run_again };
  Errors server_errors = Errors::any;  ///< What a retry after a 5xx receives.
};

/// None: there is no such profile.
std::optional<Profile> profile_of(std::string_view name);
/// "ietf, stripe, acp, ucp or custom"
std::string profile_names();

}  // namespace idem::check
