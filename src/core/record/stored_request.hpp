#pragma once

#include <idem/record.hpp>

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// An asynchronous request as stored: binary-safe, versioned, no text of HTTP.
namespace idem {

/// Name and value of a field, as views.
using StoredField = std::pair<std::string_view, std::string_view>;

/// Its parts, as views: into the request to be stored, or into the bytes that were read.
struct StoredRequest {
  int minor_version = 1;
  std::string_view method;
  std::string_view target;  ///< Path and query, as received.
  std::string_view host;
  std::vector<StoredField> fields;  ///< End-to-end ones that are no secret.
  RecordId sealed_for;              ///< The sealed part is bound to this record.
  std::string_view sealed;          ///< encode_secrets(), sealed.
  std::string_view body;
};

std::string encode_request(const StoredRequest& request);
/// Views into `bytes`. The error is static text that says what is wrong.
std::expected<StoredRequest, std::string_view> decode_request(std::string_view bytes);

/// The part of a request that is never readable in a store: its key, and its secret fields.
struct RequestSecrets {
  std::string_view key;
  std::vector<StoredField> fields;
};
std::string encode_secrets(const RequestSecrets& secrets);
std::expected<RequestSecrets, std::string_view> decode_secrets(std::string_view bytes);

/// The sealed part is bound to its record and to the rest of the request, so that an attacker who
/// can write to the store cannot use a credential for another request.
std::string bound_to(const StoredRequest& request);

}  // namespace idem
