#pragma once

#include "gateway/settings.hpp"
#include "http/server_stream.hpp"

#include <array>
#include <string_view>

namespace idem::gateway {

/// Whose share of common resources a request uses before, or without, a check of its caller. A
/// scope that can be read from the request as it is names itself, so that keyed and unkeyed
/// requests share; a credential is named by its hash, unverified; without either the address
/// counts. Allocates nothing.
class ShareName {
 public:
  /// After drop_untrusted_scope(). `client` and its head must outlive this.
  ShareName(const http::ServerStream& client, const ScopeSource& source) noexcept;
  ShareName(const ShareName&) = delete;
  ShareName& operator=(const ShareName&) = delete;

  /// Empty where all have one scope, or nothing is known.
  std::string_view text() const noexcept { return text_; }
  /// It names a caller: more than the address of one who may be a proxy.
  bool is_scope() const noexcept { return is_scope_; }

 private:
  void name_scope(std::string_view text) noexcept;

  std::array<char, 9> made_{};
  std::string_view text_;
  bool is_scope_ = false;
};

}  // namespace idem::gateway
