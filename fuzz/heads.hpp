#pragma once

#include "fuzz/check.hpp"
#include "fuzz/input.hpp"
#include "http/head.hpp"

#include <string>
#include <string_view>

/// The properties that request and response heads share.
namespace idem::fuzz {

/// Everything a head says, as text: equal texts are equal heads.
std::string describe(const http::RequestHead& head);
std::string describe(const http::ResponseHead& head);

bool same_verdict(const http::HeadResult& a, const http::HeadResult& b);
inline bool is_accepted(const http::HeadResult& result) { return result && *result; }

/// Of a head that is framed by them: one field alone gives each.
template <class Head>
void check_length_field(const Head& head);
template <class Head>
void check_coding_field(const Head& head);

std::size_t count_of(const std::vector<http::FieldView>& fields, std::string_view name);
/// The value of the first field with this name; empty when there is none.
std::string_view value_of(const std::vector<http::FieldView>& fields, std::string_view name);

/// `text` is a part of `whole`'s memory, or empty.
bool lies_in(std::string_view text, std::string_view whole);

/// Names are tokens, values can be written out, both lie in `head`, and `known` is what the name
/// is.
void check_fields(const std::vector<http::FieldView>& fields, std::string_view head);
/// `name:value CRLF` for each, and the empty line.
void append_fields(std::string& out, const std::vector<http::FieldView>& fields);

/// Fed in pieces, with `scanned` carried on, a head is judged at each step as if its bytes so far
/// had come at once, and in the end like the whole. `parse(bytes, scanned, head)`.
template <class Head, class Parse>
void check_pieces(std::string_view input, const Parse& parse) {
  const ExactBytes whole(input);
  Head whole_head;
  std::size_t none_scanned = 0;
  const auto verdict = parse(whole.view(), none_scanned, whole_head);

  Pieces pieces(input);
  Head head;
  std::size_t scanned = 0;
  for (std::size_t fed = 0;;) {
    fed += pieces.piece(input.size() - fed);
    const ExactBytes bytes(input.substr(0, fed));
    const auto carried_on = parse(bytes.view(), scanned, head);
    Head fresh_head;
    none_scanned = 0;
    const auto fresh = parse(bytes.view(), none_scanned, fresh_head);
    check(same_verdict(carried_on, fresh), "what was scanned before changes no verdict");
    if (is_accepted(carried_on)) {
      check(describe(head) == describe(fresh_head), "what was scanned before changes no head");
    }
    const bool decided = !carried_on || *carried_on;
    if (!decided && fed < input.size()) continue;
    check(same_verdict(carried_on, verdict), "pieces change no verdict");
    check(describe(head) == describe(whole_head), "pieces change no head");
    return;
  }
}

template <class Head>
void check_length_field(const Head& head) {
  const auto one = count_of(head.fields, "content-length") == 1;
  check(one && count_of(head.fields, "transfer-encoding") == 0, "one field gives a length");
  check(std::stoull(std::string(value_of(head.fields, "content-length"))) == head.content_length,
        "the length is what the field says");
}

template <class Head>
void check_coding_field(const Head& head) {
  const auto one = count_of(head.fields, "transfer-encoding") == 1;
  check(one && count_of(head.fields, "content-length") == 0, "one field gives chunked");
  check(http::same_name(value_of(head.fields, "transfer-encoding"), "chunked"),
        "the coding is what the field says");
  check(head.minor_version == 1, "HTTP/1.0 has no codings");
}

}  // namespace idem::fuzz
