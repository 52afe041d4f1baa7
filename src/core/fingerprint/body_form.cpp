#include "core/fingerprint/body_form.hpp"

#include "core/fingerprint/form_fields.hpp"
#include "core/fingerprint/multipart.hpp"
#include "core/json/selection.hpp"

#include <idem/json.hpp>

namespace idem {
namespace {

bool is_json_media(std::string_view media) noexcept {
  return media == "application/json" || media.ends_with("+json");
}

std::optional<BodyForm> json_form(std::string_view body, const FingerprintRule& rule) {
  const auto form = fingerprint_form(body);
  if (!form) return std::nullopt;
  if (rule.include.empty() && rule.exclude.empty()) return BodyForm{"json", sha256(*form), true};
  const auto selection = JsonSelection::parse(rule.include, rule.exclude);
  if (!selection) return std::nullopt;
  return BodyForm{"json selection", selection->digest(*form)};
}

// A laxer reader may still read this body part by part, depending on the whole Content-Type.
BodyForm unread_multipart(std::string_view content_type, std::string_view body) {
  FramedDigest digest;
  digest.add(content_type);
  digest.add(body);
  return {"unread multipart", digest.finish()};
}

}  // namespace

BodyForm raw_form(std::string_view body) { return {"raw", sha256(body), true}; }

BodyForm body_form(std::string_view media, std::string_view content_type, std::string_view body,
                   const FingerprintRule& rule) {
  if (is_json_media(media)) {
    if (auto form = json_form(body, rule)) return *form;
  } else if (media == "application/x-www-form-urlencoded") {
    if (const auto digest = form_fields_digest(body)) return {"form", *digest};
  } else if (media.starts_with("multipart/")) {
    if (const auto digest = multipart_digest(content_type, body)) return {"multipart", *digest};
    return unread_multipart(content_type, body);
  }
  return raw_form(body);
}

}  // namespace idem
