#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace idem {

/// `hybrid:?truth=URL&fast=URL`, in either order. Each URL is percent-encoded as a whole, or plain:
/// a URL with "://" in it is plain, and ends at the other one's name.
struct HybridUrl {
  std::string truth;
  std::string fast;
};

bool is_hybrid_url(std::string_view url) noexcept;
/// The error is a sentence that repeats nothing of the URL.
std::expected<HybridUrl, std::string> parse_hybrid_url(std::string_view url);

}  // namespace idem
