#pragma once

#include "core/bytes/digests.hpp"

#include <idem/fingerprint.hpp>

#include <string>
#include <string_view>

namespace idem {

/// The canonical form of a body (protocol.md §10).
struct BodyForm {
  std::string_view tag;  ///< Static text; tells one kind of form from another.
  Digest digest;
  BodyKind kind = BodyKind::unread;
  /// Of the values, as loosely as any server may read them: where two bodies of one kind differ in
  /// it, they differ for every server. Nothing where `kind` is unread.
  Digest values{};
};

/// `media` is media_type() of `content_type`; `rule` is sorted and without repetitions. A body that
/// does not follow its media type counts as raw bytes, whose values are unread unless there are
/// none; the rule's pointers then do not apply.
BodyForm body_form(std::string_view media, std::string_view content_type, std::string_view body,
                   const FingerprintRule& rule);

/// `media`: of media_type().
bool is_json_media(std::string_view media) noexcept;

/// Of bytes that Idem does not read.
BodyForm raw_form(std::string_view body);

/// The form that the first fingerprint of this request covers (RequestDigest).
BodyForm counted_form(const FingerprintParts& parts);
/// The codings of the body, which count beside it, in their order and without `identity`.
std::string counted_codings(const FingerprintParts& parts);

}  // namespace idem
