// Bodies as a fingerprint reads them (protocol.md §10). Of two bodies of one media type that differ
// by more than that type lets differ, no two are one: what the input is cut into is put together in
// other ways, whose relation is known. The pointers of a rule come from the input, too.
#include "core/fingerprint/body_form.hpp"
#include "core/fingerprint/form_fields.hpp"
#include "core/fingerprint/method_override.hpp"
#include "core/fingerprint/multipart.hpp"
#include "fuzz/check.hpp"
#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"

#include <algorithm>
#include <string>

namespace idem::fuzz {
namespace {

constexpr std::string_view boundary = "b7";
constexpr std::string_view other_boundary = "Z'x";

std::optional<Digest> parts_of(std::string_view body, std::string_view by) {
  return multipart_digest("multipart/form-data; boundary=" + std::string(by), body);
}

/// The body with the one boundary in place of the other at each delimiter.
std::string with_other_boundary(std::string_view body) {
  const std::string from = "--" + std::string(boundary), to = "--" + std::string(other_boundary);
  std::string out;
  for (;;) {
    const auto at = body.find(from);
    out += body.substr(0, at);
    if (at == body.npos) return out;
    out += to;
    body.remove_prefix(at + from.size());
  }
}

void check_multipart(std::string_view input, std::string_view changed) {
  const std::string body = "--b7\r\n" + std::string(input) + "\r\n--b7--";
  const auto digest = parts_of(ExactBytes(body).view(), boundary);
  if (!digest) return;
  if (input.find("--" + std::string(other_boundary)) == input.npos) {
    check(parts_of(with_other_boundary(body), other_boundary) == digest,
          "the boundary does not count");
  }
  const auto other = parts_of("--b7\r\n" + std::string(changed) + "\r\n--b7--", boundary);
  check(!other || (*other == *digest) == (input == changed), "all else counts");
}

void check_form(std::string_view input, std::string_view changed) {
  const auto digest = form_fields_digest(ExactBytes(input).view());
  if (!digest) return;
  const auto more = form_fields_digest(std::string(input) + "&zz=1");
  const auto before = form_fields_digest("zz=1&" + std::string(input));
  const bool knows_it = input.find("zz") != input.npos || input.find_first_of("%Z") != input.npos;
  if (more && before && !knows_it) check(*more == *before, "order of other names does not count");
  const auto other = form_fields_digest(changed);
  const auto sorted = [](std::string_view text) {
    std::string bytes(text);
    std::ranges::sort(bytes);
    return bytes;
  };
  if (other && *other == *digest) check(sorted(input) == sorted(changed), "no byte is left out");
}

/// A form asks for another method exactly where one of its fields, alone, does.
void check_override(std::string_view input) {
  for (const auto* type : {"", "application/json", "multipart/form-data; boundary=b7"}) {
    MethodOverride any;
    any.add_body(type, ExactBytes(input).view());
  }
  MethodOverride whole;
  whole.add_query(ExactBytes(input).view());
  bool one_asks = false;
  for (std::string_view rest = input; !rest.empty();) {
    const auto end = std::min(rest.find_first_of("&;"), rest.size());
    MethodOverride one;
    one.add_query(rest.substr(0, end));
    one_asks = one_asks || one.asked();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  check(whole.asked() == one_asks, "each field asks for itself");
}

}  // namespace

void body_form(std::string_view input) {
  Pieces pieces(input);
  std::string changed(input);
  if (!changed.empty()) {
    std::swap(changed[pieces.position(changed.size() - 1)],
              changed[pieces.position(changed.size() - 1)]);
  }
  check_multipart(input, changed);
  check_form(input, changed);
  check_override(input);

  const std::string pointer = "/" + std::string(input.substr(0, pieces.position(input.size())));
  const FingerprintRule rule{.include = {pointer}, .exclude = {pointer + "/0", "/a"}};
  const BodyForm form =
      idem::body_form("application/json", "application/json", ExactBytes(input).view(), rule);
  const BodyForm raw = raw_form(input);
  check(form.tag != raw.tag || form.digest == raw.digest, "what is raw is the bytes");
}

}  // namespace idem::fuzz
