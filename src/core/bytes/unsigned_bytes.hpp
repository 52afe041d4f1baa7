#pragma once

#include <string_view>

namespace idem {

/// The same bytes as OpenSSL takes them.
inline unsigned char* unsigned_bytes(char* text) noexcept {
  return reinterpret_cast<unsigned char*>(text);
}
inline const unsigned char* unsigned_bytes(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace idem
