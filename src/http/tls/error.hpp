#pragma once

#include <string>

/// What OpenSSL noted on this thread about its last failure.
namespace idem::http {

/// A sentence; the list of notes is empty afterwards.
std::string last_tls_error();
/// Before a call whose failure will be asked about.
void clear_tls_errors() noexcept;

}  // namespace idem::http
