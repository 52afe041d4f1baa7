#pragma once

#include <idem/record.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

/// What a client would like (RFC 7240), as far as it is heard here.
namespace idem {

/// The `wait` preference of a request's Prefer lines, fed in their order: the first one counts, in
/// whatever line it stands, and a later one never (§2). One whose value is no number of seconds
/// is not heard at all; it still hides those after it. What is malformed up to a comma is skipped.
class PreferredWait {
 public:
  /// `line`: one field's value.
  void read(std::string_view line) noexcept;
  std::optional<std::chrono::seconds> value() const noexcept { return value_; }

 private:
  bool seen_ = false;
  std::optional<std::chrono::seconds> value_;
};

/// Whole seconds as RFC 9110 §10.2.3 writes them; more than can be counted is as much as can be.
std::optional<std::chrono::seconds> delta_seconds(std::string_view digits) noexcept;

/// True when a line of Prefer asks for an answer at once, whatever becomes of the work (§4.1).
bool prefers_async(std::string_view line) noexcept;

/// What is left of a line of Prefer once the preferences that were met here are taken out: `wait`
/// and `respond-async`.
std::string without_met(std::string_view line);

/// How long a duplicate is kept waiting.
struct WaitRule {
  Millis time{};
  std::optional<std::chrono::seconds> applied{};  ///< The client's preference, as far as it is met.
};

/// A preference shortens or lengthens what the route does by itself, up to `time_max`; 0 means that
/// the client does not want to wait.
WaitRule wait_rule(Millis by_itself, Millis time_max,
                   std::optional<std::chrono::seconds> preferred) noexcept;

}  // namespace idem
