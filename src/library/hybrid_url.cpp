#include "library/hybrid_url.hpp"

#include "core/bytes/percent.hpp"

#include <optional>

namespace idem {
namespace {

constexpr std::string_view scheme = "hybrid:";
constexpr std::string_view truth_mark = "truth=";
constexpr std::string_view fast_mark = "fast=";

/// A plain URL may have percent signs of its own.
std::optional<std::string> decoded(std::string_view text) {
  return text.find("://") != text.npos ? std::optional(std::string(text)) : percent_decoded(text);
}

}  // namespace

bool is_hybrid_url(std::string_view url) noexcept { return url.starts_with(scheme); }

std::expected<HybridUrl, std::string> parse_hybrid_url(std::string_view url) {
  const std::string what = "write hybrid:?truth=postgres://...&fast=redis://...";
  if (!is_hybrid_url(url)) return std::unexpected(what);
  url.remove_prefix(scheme.size());
  if (!url.starts_with('?')) return std::unexpected(what);
  url.remove_prefix(1);
  const bool is_truth_first = url.starts_with(truth_mark);
  const std::string_view first = is_truth_first ? truth_mark : fast_mark;
  const std::string_view second = is_truth_first ? fast_mark : truth_mark;
  if (!url.starts_with(first)) return std::unexpected(what);
  url.remove_prefix(first.size());
  const std::string between = "&" + std::string(second);
  const auto at = url.find(between);
  if (at == url.npos) return std::unexpected(what);
  if (url.find(between, at + 1) != url.npos) {
    return std::unexpected("it can be read in two ways; percent-encode each URL");
  }
  auto one = decoded(url.substr(0, at));
  auto other = decoded(url.substr(at + between.size()));
  if (!one || !other) return std::unexpected("a URL in it is not percent-encoded as it should be");
  if (!is_truth_first) std::swap(one, other);
  return HybridUrl{std::move(*one), std::move(*other)};
}

}  // namespace idem
