#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// What came over the network, made harmless for its readers: a terminal, a browser, a parser.
namespace idem::check {

/// What becomes of the ends of lines and of tabs.
enum class LineEnds : std::uint8_t {
  kept,    ///< They stay.
  plain,   ///< CR LF becomes LF, and a CR alone is shown. Tabs stay.
  joined,  ///< Each run of them and of spaces becomes one space, and none at both ends.
};

/// `text` as UTF-8 without invisible characters. A byte outside of UTF-8 and a control character
/// are shown as "\x1b", other characters without a form of their own, or that turn the direction of
/// text, as "\u{202e}". A backslash stays as it is.
std::string printable(std::string_view text, LineEnds ends = LineEnds::joined);

/// The same for XML and HTML, as content or as the value of an attribute in double quotes.
std::string markup(std::string_view text, LineEnds ends = LineEnds::joined);

/// The same for <pre> of HTML, with plain ends of lines. <i> marks what stands for something that
/// has no form, so that it differs from a backslash of the text.
std::string marked_markup(std::string_view text);

/// `text` as a URI: what RFC 3986 does not allow where it is, is percent-encoded.
std::string uri_text(std::string_view text);

/// The first bytes of `text`, at most `bytes_max`; cuts no character.
std::string_view beginning_of(std::string_view text, std::size_t bytes_max) noexcept;

/// The beginning, and how many bytes are not shown where it is not the whole.
std::string excerpt_of(std::string_view text, std::size_t bytes_max);

}  // namespace idem::check
