#pragma once

#include <string>

/// OpenSSL's notes on this thread about its last failure.
namespace idem::http {

/// A sentence; the list of notes is empty afterwards.
std::string last_tls_error();
/// Call it before a call whose failure last_tls_error() is to describe.
void clear_tls_errors() noexcept;

}  // namespace idem::http
