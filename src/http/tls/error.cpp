#include "http/tls/error.hpp"

#include <openssl/err.h>

#include <cstring>

namespace idem::http {

std::string last_tls_error() {
  // The first note is the cause, those behind it are what it led to.
  const unsigned long first = ERR_get_error();
  ERR_clear_error();
  if (first == 0) return "no reason was given";
  if (ERR_SYSTEM_ERROR(first)) return std::strerror(ERR_GET_REASON(first));
  const char* reason = ERR_reason_error_string(first);
  return reason != nullptr ? reason : "error " + std::to_string(first);
}

void clear_tls_errors() noexcept { ERR_clear_error(); }

}  // namespace idem::http
