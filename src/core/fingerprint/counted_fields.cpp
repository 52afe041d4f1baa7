#include "core/bytes/ascii.hpp"
#include "core/fingerprint/plain_name.hpp"

#include <idem/fingerprint.hpp>

#include <algorithm>
#include <array>

namespace idem {

bool is_plain_name(std::string_view name, std::span<const std::string_view> names) noexcept {
  // Most names begin with another letter already.
  if (!name.empty() && lower_letter(name.front()) >= 'a' && lower_letter(name.front()) <= 'z') {
    const char first = lower_letter(name.front());
    if (std::ranges::none_of(names, [&](auto one) { return one.front() == first; })) return false;
  }
  std::array<char, 24> plain{};
  std::size_t size = 0;
  for (const char c : name) {
    const char lower = lower_letter(c);
    if (!is_digit(lower) && (lower < 'a' || lower > 'z')) continue;
    if (size == plain.size()) return false;
    plain[size++] = lower;
  }
  return std::ranges::find(names, std::string_view(plain.data(), size)) != names.end();
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
  return is_plain_name(field_name, names);
}

}  // namespace v0_1
}  // namespace idem
