#pragma once

#include "check/profile.hpp"
#include "config/given.hpp"
#include "core/json/scalars.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace idem::check {

using Fields = std::vector<std::pair<std::string, std::string>>;

/// Parts of a request that replace those of the usual one.
struct Variation {
  std::optional<std::string> body;
  std::optional<std::string> query;
  Fields headers;
};

/// How one writes a key into its field.
enum class KeyForm : std::uint8_t {
  bare,    ///< abc
  string,  ///< "abc": a String of RFC 9651.
  uuid,    ///< A UUID, bare.
};

/// What the tester knows of an API: the file of `idem check` (docs/check.md).
struct Spec {
  std::string method = "POST";
  std::string path;
  Fields headers;
  std::string body;  ///< With {{amount}} and {{unique}}.

  std::optional<JsonPointer> resource;  ///< Points to the created id in the answer.
  std::string resource_header;          ///< The field that has it instead; empty: none.
  /// The source of the total number of executions.
  struct Effects {
    std::string url;      ///< Answers JSON. Empty: `command` prints it.
    std::string command;  ///< Prints the number, or JSON.
    std::optional<JsonPointer> pointer;
    Fields headers;
    /// For how long the number must stand still before it counts; none: as the run finds out.
    std::optional<std::chrono::milliseconds> settle;
  };
  std::optional<Effects> effects;

  struct Tenant {
    std::string header;
    std::string other;
  };
  std::optional<Tenant> tenant;
  std::string restart;  ///< A command; empty: none.

  std::string key_header = "Idempotency-Key";
  std::optional<KeyForm> key_form;  ///< None: the profile's, or what the API accepts.

  std::optional<std::string> other_path;    ///< Where another operation accepts the same body.
  std::optional<std::string> other_method;  ///< Likewise.
  std::optional<std::string> other_query;
  std::optional<Variation> slow;     ///< Makes the operation slow, by at least a second.
  std::optional<Variation> fails;    ///< Makes the operation fail with a 5xx without an effect.
  std::optional<Variation> refuses;  ///< Makes the API refuse the request with a 4xx.
  std::optional<std::chrono::milliseconds> retention;  ///< For how long it promises replays.

  std::int64_t amount = 100;                  ///< The first {{amount}}.
  std::chrono::milliseconds timeout{10'000};  ///< Of one answer.
  Profile profile;
  std::vector<std::string> secrets;  ///< Values that no report shows.
};

/// "500ms", "10s", "5m" or "24h"; none: it is no duration.
std::optional<std::chrono::milliseconds> duration_of(std::string_view text);

/// Reads the file. `environment` gives the value of ${NAME}; none: it is not set, which is a
/// complaint. `profile`: of the command line, wins; empty: the file's, or ietf.
Spec read_spec(std::string_view text, const std::string& source, std::string_view profile,
               const std::function<std::optional<std::string>(const std::string&)>& environment,
               config::Complaints& complaints);

}  // namespace idem::check
