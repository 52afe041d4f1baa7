#pragma once

#include "core/bytes/digests.hpp"

#include <idem/fingerprint.hpp>

#include <string>
#include <string_view>

namespace idem {

/// The canonical form of a body (protocol.md §10). The tag tells one kind of form from another.
struct BodyForm {
  std::string_view tag;  ///< Static text.
  Digest digest;
  bool as_in_version_1 = false;
};

/// `media` is media_type() of `content_type`; `rule` is sorted and without repetitions. A body that
/// does not follow its media type counts as raw bytes; the rule's pointers then do not apply.
BodyForm body_form(std::string_view media, std::string_view content_type, std::string_view body,
                   const FingerprintRule& rule);

BodyForm raw_form(std::string_view body);

/// The form that the newest fingerprint of this request covers (RequestDigest).
BodyForm counted_form(const FingerprintParts& parts);
/// The codings of the body, which count beside it, in their order and without `identity`.
std::string counted_codings(const FingerprintParts& parts);

}  // namespace idem
