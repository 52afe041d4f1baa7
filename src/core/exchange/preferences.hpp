#pragma once

#include <idem/record.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

/// A client's preferences (RFC 7240), as far as Idem supports them.
namespace idem {

/// The `wait` preference of a request's Prefer lines, read in their order: the first one counts
/// (§2), on whichever line it is. If its value is no number of seconds, there is no preference;
/// later ones still do not count. Malformed text is skipped up to the next comma.
class PreferredWait {
 public:
  /// `line`: one field's value.
  void read(std::string_view line) noexcept;
  std::optional<std::chrono::seconds> value() const noexcept { return value_; }

 private:
  bool seen_ = false;
  std::optional<std::chrono::seconds> value_;
};

/// Whole seconds (RFC 9110 §10.2.3), at most limits::duration_max; none for other texts.
std::optional<std::chrono::seconds> delta_seconds(std::string_view digits) noexcept;

/// True if a line of Prefer has `respond-async` (§4.1).
bool prefers_async(std::string_view line) noexcept;

/// A line of Prefer without the preferences that the gateway itself meets: `wait` and
/// `respond-async`.
std::string without_met(std::string_view line);

/// How long a duplicate is kept waiting.
struct WaitRule {
  Millis time{};
  std::optional<std::chrono::seconds> applied{};  ///< The client's preference, as far as it is met.
};

/// A preference shortens or lengthens the route's own wait, up to `time_max`; 0 means that the
/// client does not want to wait.
WaitRule wait_rule(Millis by_itself, Millis time_max,
                   std::optional<std::chrono::seconds> preferred) noexcept;

}  // namespace idem
