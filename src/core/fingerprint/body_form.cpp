#include "core/fingerprint/body_form.hpp"

#include "core/fingerprint/form_fields.hpp"
#include "core/fingerprint/multipart.hpp"
#include "core/json/selection.hpp"

#include <idem/json.hpp>

namespace idem {
namespace {

std::optional<BodyForm> json_form(std::string_view body, const FingerprintRule& rule) {
  const auto exact = fingerprint_form(body);
  if (!exact) return std::nullopt;
  const bool is_whole = rule.include.empty() && rule.exclude.empty();
  std::optional<JsonSelection> selection;
  if (!is_whole) {
    auto parsed = JsonSelection::parse(rule.include, rule.exclude);
    if (!parsed) return std::nullopt;
    selection = std::move(*parsed);
  }
  const auto digest_of = [&](const std::string& form) {
    return is_whole ? sha256(form) : selection->digest(form);
  };
  BodyForm form{is_whole ? "json" : "json selection", digest_of(*exact)};
  form.kind = BodyKind::json;
  form.values = form.digest;
  // Many servers read a number as a double, so for them two bodies of one RFC 8785 form are one.
  // The exact form differs from that only in numbers that it has tagged by a `#`.
  if (exact->find('#') == exact->npos) return form;
  const auto doubles = canonicalize(body);
  if (doubles) {
    form.values = digest_of(*doubles);
  } else {
    form.kind = BodyKind::unread;  // A number is beyond all doubles.
  }
  return form;
}

std::optional<BodyForm> form_of_fields(std::string_view body) {
  const auto digest = form_fields_digest(body);
  if (!digest) return std::nullopt;
  BodyForm form{"form", *digest};
  if (const auto values = form_values_digest(body)) {
    form.kind = BodyKind::form;
    form.values = *values;
  }
  return form;
}

// A laxer reader may still read this body part by part, depending on the whole Content-Type.
BodyForm unread_multipart(std::string_view content_type, std::string_view body) {
  FramedDigest digest;
  digest.add(content_type);
  digest.add(body);
  return {"unread multipart", digest.finish()};
}

}  // namespace

bool is_json_media(std::string_view media) noexcept {
  return media == "application/json" || media.ends_with("+json");
}

BodyForm raw_form(std::string_view body) { return {"raw", sha256(body)}; }

BodyForm body_form(std::string_view media, std::string_view content_type, std::string_view body,
                   const FingerprintRule& rule) {
  if (is_json_media(media)) {
    if (auto form = json_form(body, rule)) return *form;
  } else if (media == "application/x-www-form-urlencoded") {
    if (auto form = form_of_fields(body)) return *form;
  } else if (media.starts_with("multipart/")) {
    if (const auto digest = multipart_digest(content_type, body)) return {"multipart", *digest};
    return unread_multipart(content_type, body);
  }
  BodyForm form = raw_form(body);
  if (body.empty()) {
    form.kind = BodyKind::empty;
    form.values = form.digest;
  }
  return form;
}

}  // namespace idem
