#pragma once

#include "core/bytes/digests.hpp"

#include <optional>
#include <string_view>

namespace idem {

/// The digest of a multipart body (RFC 2046 §5.1, RFC 7578) part by part. It covers the order of
/// the parts, their headers as spelled, their contents, the lines before the first part and behind
/// the last, and all parameters of `content_type` but the boundary, which clients draw anew for
/// each request. A multipart inside a part is content.
///
/// None if another reader might find other parts: no boundary, two, or one outside RFC 2046's
/// grammar; "--" and the boundary in a place that is no delimiter's; anything but a line's end
/// behind a delimiter; a part without the empty line behind its headers; more than
/// limits::multipart_parts_max parts. Two bodies with the same digest differ in the boundary alone.
///
/// Time: reading the body, at worst 70 times (the longest boundary).
std::optional<Digest> multipart_digest(std::string_view content_type, std::string_view body);

}  // namespace idem
