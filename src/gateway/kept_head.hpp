#pragma once

#include "http/head.hpp"

#include <string>

namespace idem::gateway {

/// A request's head that outlives the request: what the rules for keys read of it.
class KeptHead {
 public:
  explicit KeptHead(const http::RequestHead& head);
  KeptHead(const KeptHead&) = delete;
  KeptHead& operator=(const KeptHead&) = delete;

  const http::RequestHead& head() const noexcept { return head_; }
  std::size_t bytes() const noexcept { return bytes_of(head_); }
  /// What a copy takes.
  static std::size_t bytes_of(const http::RequestHead& head) noexcept;

 private:
  std::string_view keep(std::string_view text);

  std::string text_;
  http::RequestHead head_;
};

}  // namespace idem::gateway
