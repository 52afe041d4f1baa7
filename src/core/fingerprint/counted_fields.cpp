#include "core/bytes/ascii.hpp"
#include "core/fingerprint/plain_name.hpp"

#include <idem/fingerprint.hpp>

#include <algorithm>
#include <array>

namespace idem {

namespace {

/// Whether `name` is `plain` without case, and without what is neither a letter nor a digit.
bool is_plainly(std::string_view name, std::string_view plain) noexcept {
  std::size_t at = 0;
  for (const char c : name) {
    const char lower = lower_letter(c);
    if (!is_digit(lower) && (lower < 'a' || lower > 'z')) continue;
    if (at == plain.size() || plain[at] != lower) return false;
    ++at;
  }
  return at == plain.size();
}

}  // namespace

bool PlainNames::has_same_letters(std::string_view name) const noexcept {
  return std::ranges::any_of(names_, [&](std::string_view one) {
    return one.size() <= name.size() && is_plainly(name, one);
  });
}

inline namespace v0_1 {

bool counts_always(std::string_view field_name) noexcept {
  static constexpr std::array<std::string_view, 10> names{
      // What is asked for: SOAP 1.1 §6.1.1, AWS's JSON protocols; WebDAV (RFC 4918 §10).
      "soapaction", "xamztarget", "destination", "overwrite",
      // Another path than the request line's, to IIS and old versions of Symfony and Zend.
      "xoriginalurl", "xrewriteurl",
      // What the body is (RFC 9110 §8.5, §14.4).
      "contentlanguage", "contentrange",
      // On whose account it acts.
      "stripeaccount", "stripecontext"};
  static constexpr PlainNames all(names);
  return all.has(field_name);
}

}  // namespace v0_1
}  // namespace idem
