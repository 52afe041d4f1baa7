#pragma once

#include "core/bytes/digests.hpp"

#include <idem/fingerprint.hpp>

#include <string_view>

namespace idem {

/// What a body counts as (protocol.md §10). The tag keeps one form from passing for another.
struct BodyForm {
  std::string_view tag;  ///< Static text.
  Digest digest;
  bool as_in_version_1 = false;
};

/// `media` is media_type() of `content_type`, `rule` without repetitions and in order. A body that
/// does not follow its media type counts as raw bytes, and then the rule's pointers mean nothing.
BodyForm body_form(std::string_view media, std::string_view content_type, std::string_view body,
                   const FingerprintRule& rule);

BodyForm raw_form(std::string_view body);

}  // namespace idem
