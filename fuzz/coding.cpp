// Encoded bodies as the digest reads them (protocol.md §10). What a coding made of the input is the
// input again, and nothing that follows its end is overlooked. Of any bytes, no more is decoded
// than was allowed, and a wider bound changes no content.
#include "coding/decoded.hpp"

#include "fuzz/check.hpp"
#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"
#include "support/gzip.hpp"

#include <array>
#include <string>

namespace idem::fuzz {
namespace {

constexpr std::size_t most = 64UL * 1024;

void check_any(Coding coding, std::string_view input, std::size_t narrow) {
  const auto content = decoded(coding, ExactBytes(input).view(), most);
  check(!content || content->size() <= most, "no more is decoded than was allowed");
  const auto within = decoded(coding, ExactBytes(input).view(), narrow);
  check(!within || (content && *within == *content), "a wider bound changes no content");
  check(within || !content || content->size() > narrow, "what fits is decoded");
}

void check_made(Coding coding, const std::string& encoded, std::string_view input) {
  const auto content = decoded(coding, ExactBytes(encoded).view(), input.size());
  check(content && *content == input, "what was encoded comes back");
  if (!input.empty()) {
    const auto within = decoded(coding, ExactBytes(encoded).view(), input.size() - 1);
    check(!within && within.error() == NotDecoded::too_large, "one byte too many is too many");
  }
  for (const auto& changed : {encoded + '\0', encoded + encoded, encoded.substr(1),
                              encoded.substr(0, encoded.size() - 1)}) {
    check(!decoded(coding, ExactBytes(changed).view(), most), "it ends where its bytes end");
  }
}

}  // namespace

void coding(std::string_view input) {
  Pieces pieces(input);
  const auto narrow = pieces.position(1024);
  for (const auto coding : {Coding::gzip, Coding::deflate, Coding::br}) {
    check_any(coding, input, narrow);
  }
  check_made(Coding::gzip, test::gzipped(input), input);
  check_made(Coding::deflate, test::gzipped(input, 0, 15), input);
}

}  // namespace idem::fuzz
