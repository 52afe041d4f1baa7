#pragma once

#include <idem/store.hpp>

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What an answer of a provider, or an event of its, says about an attempt, and the answer to our
/// client that is made of it (protocol.md §19). Pure.
namespace idem {

enum class Finding : std::uint8_t {
  found,      ///< It was done.
  failed,     ///< It was tried, and ended in a failure that is final.
  not_there,  ///< There is nothing of it; whether that proves anything is a matter of time.
  later,      ///< It says nothing yet, or nothing that we understand.
};
std::string_view name_of(Finding finding) noexcept;

/// That the work ran, whatever came of it. Such evidence always counts.
inline bool is_positive(Finding finding) noexcept {
  return finding == Finding::found || finding == Finding::failed;
}
/// Whether an answer of this status is what the finding says.
inline bool agrees(Finding finding, int status) noexcept {
  return finding == (status < 400 ? Finding::found : Finding::failed);
}
/// Whether evidence about the attempt with this fence, which a store has refused, says that
/// something went wrong: the work of an attempt ran although another one has the record, or ended
/// otherwise than its answer says. `record` as it is now.
bool contradicts(Finding finding, const Resolve::Reply& reply, const std::optional<Record>& record,
                 Fence fence) noexcept;

/// One line of a mapping: "200", "2xx", "200 /status=captured", "/type=charge.succeeded",
/// "200 /data/0" (there is such a value), "200 !/data/0" (there is none).
class ResponseMatcher {
 public:
  /// The error is a sentence that quotes the text.
  static std::expected<ResponseMatcher, std::string> parse(std::string_view text);

  /// `json`: whether `body` is JSON, which a pointer needs.
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

/// What matches under one name says so; what matches under none, or under several, says `later`.
Finding judge(const ResponseMatchers& rules, int status, std::string_view body);

/// How the answer that is replayed is made of what the provider said.
struct RebuildRule {
  int found_status = 200;
  int failed_status = 402;
  std::string content_type = "application/json";
  /// JSON Pointer to the part that becomes the body; empty: all of it.
  std::string body{};
  /// Name and value, in which {/pointer} stands for a value of the provider's answer.
  std::vector<Field> headers{};
};

/// None: what the rule points at is not there, or would be no field value.
std::optional<StoredResponse> rebuild(const RebuildRule& rule, Finding finding,
                                      std::string_view body);

/// `text` with each {name} replaced by what `value_of` says, percent-encoded where it goes into a
/// URL. None: it does not say anything for one of them.
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
