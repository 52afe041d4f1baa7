#pragma once

#include <idem/record.hpp>

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// An asynchronous request as it lies in a store: binary-safe, versioned, no text of HTTP.
namespace idem {

/// A field of it, seen where it lies.
using StoredField = std::pair<std::string_view, std::string_view>;

/// Its parts, seen where they lie: in the request that is stored, or in the bytes that were read.
struct StoredRequest {
  int minor_version = 1;
  std::string_view method;
  std::string_view target;  ///< Path and query, as received.
  std::string_view host;
  std::vector<StoredField> fields;  ///< End-to-end ones that are no secret.
  RecordId sealed_for;              ///< Under which the sealed part was bound.
  std::string_view sealed;          ///< encode_secrets(), sealed.
  std::string_view body;
};

std::string encode_request(const StoredRequest& request);
/// Views into `bytes`. The error is static text: what is wrong with them.
std::expected<StoredRequest, std::string_view> decode_request(std::string_view bytes);

/// What of a request is never readable in a store: its key, and the fields that were kept.
struct RequestSecrets {
  std::string_view key;
  std::vector<StoredField> fields;
};
std::string encode_secrets(const RequestSecrets& secrets);
std::expected<RequestSecrets, std::string_view> decode_secrets(std::string_view bytes);

/// What the sealed part is bound to: its record, and all else of the request, so that a credential
/// cannot be had for another request by whoever can write to the store.
std::string bound_to(const StoredRequest& request);

}  // namespace idem
