#include "config/words.hpp"

#include "core/bytes/json_string.hpp"
#include "core/bytes/percent.hpp"

#include <algorithm>

namespace idem::config {
namespace {

// No known word is longer, and the cost grows with the square.
constexpr std::size_t letters_max = 64;

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

constexpr std::string_view mask = "***";

/// A hybrid's URL has several.
std::string masked_as_written(std::string_view url) {
  std::string text(url);
  for (auto scheme = text.find("://"); scheme != text.npos; scheme = text.find("://", scheme)) {
    scheme += 3;
    const auto authority = std::string_view(text).substr(scheme, text.find('/', scheme) - scheme);
    const auto at = authority.rfind('@');
    const auto colon = authority.find(':');
    if (at == authority.npos || colon > at) continue;
    text.replace(scheme + colon + 1, at - colon - 1, mask);
  }
  // An option of libpq's URLs, and `sslpassword`.
  static constexpr std::string_view option = "password=";
  for (auto at = text.find(option); at != text.npos; at = text.find(option, at)) {
    at += option.size();
    text.replace(at, std::min(text.find('&', at), text.size()) - at, mask);
  }
  return text;
}

}  // namespace

std::string shown(std::string_view text) {
  std::string out = json_string(text.substr(0, letters_max));
  if (text.size() > letters_max) out += "...";
  return out;
}

std::string without_password(std::string_view url) {
  std::string masked = masked_as_written(url);
  // The URLs in a hybrid's one may be percent-encoded.
  const auto decoded = percent_decoded(masked);
  if (!decoded) return masked;
  std::string again = masked_as_written(*decoded);
  return again == *decoded ? masked : again;
}

std::string without_quoted_password(std::string sentence) {
  const auto scheme = sentence.find("://");
  if (scheme == sentence.npos) return sentence;
  const auto colon = sentence.find(':', scheme + 1);
  const auto at = sentence.rfind('@', sentence.find('"', scheme));
  if (colon == sentence.npos || at == sentence.npos || colon > at) return sentence;
  return sentence.replace(colon + 1, at - colon - 1, "***");
}

std::string alternatives(std::span<const std::string_view> words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view nearest(std::string_view wrong, std::span<const std::string_view> words) {
  if (wrong.size() > letters_max) return {};
  std::string_view best;
  std::size_t least = letters_max;
  for (const auto word : words) {
    const auto letters = distance(wrong, word);
    const auto longer = std::max(wrong.size(), word.size());
    const std::size_t near = longer < 5 ? 1 : std::max<std::size_t>(2, longer / 3);
    if (letters > near || letters >= least) continue;
    least = letters;
    best = word;
  }
  return best;
}

std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> words) {
  const auto best = nearest(wrong, words);
  return best.empty() ? std::string{} : "; did you mean " + std::string(best) + "?";
}

}  // namespace idem::config
