#pragma once

#include "core/bytes/digests.hpp"

#include <optional>
#include <string_view>

namespace idem {

/// The digest of a multipart body (RFC 2046 §5.1, RFC 7578) part by part: order, part headers as
/// they are spelled and contents count, and so do the lines before the first part and behind the
/// last, and all parameters of `content_type` but for the boundary, which clients draw anew for
/// each request. A multipart inside a part is content.
///
/// None where another reader might find other parts: no boundary, two, or one outside RFC 2046's
/// grammar; "--" and the boundary at any place that is no delimiter's; white space or anything else
/// but a line's end behind a delimiter; a part
/// without the empty line behind its headers; more than limits::multipart_parts_max parts. Bodies
/// that have a digest are told apart by everything but the boundary: each can be put together again
/// from what enters.
///
/// Time is that of reading the body, at worst 70 times (the longest boundary).
std::optional<Digest> multipart_digest(std::string_view content_type, std::string_view body);

}  // namespace idem
