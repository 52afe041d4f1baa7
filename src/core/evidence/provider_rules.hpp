#pragma once

#include <idem/store.hpp>

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Reads from a provider's answer, or from its event, how an attempt ended, and makes the answer
/// for the client of it (protocol.md §19). Pure.
namespace idem {

enum class Finding : std::uint8_t {
  found,      ///< The work was done.
  failed,     ///< The work ran, and ended in a final failure.
  not_there,  ///< The provider knows nothing of it; the time decides whether that is a proof.
  later,      ///< No result yet, or none that the rules know.
};
std::string_view name_of(Finding finding) noexcept;

/// True if the work ran, with success or not. The store accepts such evidence at any time.
inline bool is_positive(Finding finding) noexcept {
  return finding == Finding::found || finding == Finding::failed;
}
/// Whether an answer of this status agrees with the finding.
inline bool agrees(Finding finding, int status) noexcept {
  return finding == (status < 400 ? Finding::found : Finding::failed);
}
/// Whether evidence about the attempt with this fence, which the store refused, contradicts the
/// record: the attempt's work ran although another attempt has the record, or its answer says the
/// opposite. `record` as it is now.
bool contradicts(Finding finding, const Resolve::Reply& reply, const std::optional<Record>& record,
                 std::optional<Fence> fence) noexcept;

/// One rule of a mapping: "200", "2xx", "200 /status=captured", "/type=charge.succeeded",
/// "200 /data/0" (there is such a value), "200 !/data/0" (there is none).
class ResponseMatcher {
 public:
  /// The error is a sentence that quotes the text.
  static std::expected<ResponseMatcher, std::string> parse(std::string_view text);

  /// `is_json`: `body` is JSON, which a pointer needs.
  bool matches(int status, std::string_view body, bool is_json) const;

 private:
  enum class Asks : std::uint8_t { nothing, presence, absence, value };
  int status_from_ = 0;  ///< 0: any.
  int status_to_ = 999;
  Asks asks_ = Asks::nothing;
  std::string pointer_;
  std::string value_;
};

struct ResponseMatchers {
  std::vector<ResponseMatcher> found{};
  std::vector<ResponseMatcher> failed{};
  std::vector<ResponseMatcher> not_there{};
};

/// The name under which a rule matches; `later` if rules match under no name or under several.
Finding judge(const ResponseMatchers& rules, int status, std::string_view body);

/// How the answer for replays is made of the provider's answer.
struct RebuildRule {
  int found_status = 200;
  int failed_status = 402;
  std::string content_type = "application/json";
  /// JSON Pointer to the part that becomes the body; empty: all of it.
  std::string body{};
  /// Name and value; {/pointer} in it is replaced by a value of the provider's answer.
  std::vector<Field> headers{};
};

/// None: a value that the rule points at is missing, or is no valid field value.
std::optional<StoredResponse> rebuild(const RebuildRule& rule, Finding finding,
                                      std::string_view body);

/// `text` with each {name} replaced by value_of(name), which percent-encodes for URLs. None:
/// value_of() gives nothing for one of them, or a brace is not closed.
template <class ValueOf>
std::optional<std::string> expand(std::string_view text, const ValueOf& value_of) {
  std::string out;
  while (!text.empty()) {
    const auto open = text.find('{');
    out += text.substr(0, open);
    if (open == text.npos) break;
    const auto close = text.find('}', open);
    if (close == text.npos) return std::nullopt;
    const std::optional<std::string> value = value_of(text.substr(open + 1, close - open - 1));
    if (!value) return std::nullopt;
    out += *value;
    text.remove_prefix(close + 1);
  }
  return out;
}

/// The names in braces.
std::vector<std::string> placeholders(std::string_view text);

}  // namespace idem
