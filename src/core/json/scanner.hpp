#pragma once

#include "core/json/members.hpp"
#include "core/json/number.hpp"
#include "core/json/string.hpp"

#include <idem/assert.hpp>
#include <idem/json.hpp>
#include <idem/limits.hpp>

#include <array>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace idem {

/// A string or a name of the text. Its views are good until the sink's function returns.
struct ScannedString {
  std::string_view value;  ///< Decoded.
  bool plain = false;      ///< The text has it without an escape.

  /// As the text has it, with its quotes. Only of a plain one.
  std::string_view quoted() const noexcept { return {value.data() - 1, value.size() + 2}; }
};

/// One pass over a text that checks it by RFC 8259 and RFC 7493 and hands what it reads to a sink,
/// in the order of the text. These rules stand here alone, so that no two readers of ours take one
/// text for different values. A fixed array holds the open containers: no recursion.
///
/// The functions of a sink; after a refusal none of them is called again:
///   void begin(std::size_t text_bytes)    before all others
///   void literal(std::string_view)        `true`, `false` or `null`
///   std::expected<void, JsonError> number(std::string_view text, const NumberLiteral&)
///   void string(const ScannedString&)     a value
///   void name(const ScannedString&)       of the member whose value comes next
///   void open(char bracket), close(char bracket)
///   void comma()                          between two elements or members
///   std::size_t written() const           the length of what it wrote, as members() records it
template <class Sink>
class JsonScanner {
 public:
  JsonScanner(std::string_view text, Sink sink, std::size_t depth_max = limits::json_depth_max)
      : text_(text), sink_(std::move(sink)), depth_max_(depth_max) {
    IDEM_ASSERT(depth_max <= limits::json_depth_max);
  }

  std::expected<void, JsonError> run();

  Sink& sink() noexcept { return sink_; }
  const JsonMembers& members() const noexcept { return members_; }

 private:
  // What may come next, apart from white space.
  enum class Expect { value, first_element, first_name, name, separator, end };
  enum class Container : unsigned char { array, object };

  bool step();
  bool read_value();
  bool read_literal(std::string_view literal);
  bool read_number();
  bool read_string_value();
  bool read_name();
  bool read_separator();
  bool open(Container container);
  bool close();

  void skip_space() noexcept {
    while (at_ < text_.size() &&
           (next() == ' ' || next() == '\n' || next() == '\r' || next() == '\t')) {
      ++at_;
    }
  }
  bool value_done() noexcept {
    expect_ = depth_ == 0 ? Expect::end : Expect::separator;
    return true;
  }
  bool refuse(std::size_t offset, std::string_view what) noexcept {
    error_ = {offset, what};
    return false;
  }
  bool refuse(const JsonError& error) noexcept { return refuse(error.offset, error.what); }
  char next() const noexcept { return text_[at_]; }
  std::string_view between_quotes(const StringLiteral& literal) const noexcept {
    return {text_.data() + literal.begin, literal.end - literal.begin};
  }

  std::string_view text_;
  Sink sink_;
  std::size_t depth_max_;
  std::size_t at_ = 0;
  Expect expect_ = Expect::value;
  std::array<Container, limits::json_depth_max> containers_{};
  std::size_t depth_ = 0;
  JsonMembers members_;
  std::string names_;    // decoded names that had escapes; never moves once it holds one
  std::string decoded_;  // one value at a time
  JsonError error_;
};

/// Keeps every position of a written text within 32 bits: the worst growth is `1e20,` to 22 bytes.
inline constexpr std::size_t json_text_bytes_max = std::size_t{512} << 20;
static_assert(json_text_bytes_max >= limits::request_body_bytes_cap);

template <class Sink>
std::expected<void, JsonError> JsonScanner<Sink>::run() {
  if (text_.size() > json_text_bytes_max) return std::unexpected(JsonError{0, "text too long"});
  sink_.begin(text_.size());
  for (skip_space(); at_ < text_.size(); skip_space()) {
    if (!step()) return std::unexpected(error_);
  }
  if (expect_ != Expect::end) return std::unexpected(JsonError{at_, "unexpected end"});
  return {};
}

template <class Sink>
bool JsonScanner<Sink>::step() {
  switch (expect_) {
    case Expect::value:
      return read_value();
    case Expect::first_element:
      return next() == ']' ? close() : read_value();
    case Expect::first_name:
      return next() == '}' ? close() : read_name();
    case Expect::name:
      return read_name();
    case Expect::separator:
      return read_separator();
    case Expect::end:
      return refuse(at_, "more than one value");
  }
  return false;
}

template <class Sink>
bool JsonScanner<Sink>::read_value() {
  switch (next()) {
    case '{':
      return open(Container::object);
    case '[':
      return open(Container::array);
    case '"':
      return read_string_value();
    case 't':
      return read_literal("true");
    case 'f':
      return read_literal("false");
    case 'n':
      return read_literal("null");
    default:
      break;
  }
  if (next() == '-' || (next() >= '0' && next() <= '9')) return read_number();
  return refuse(at_, "not a value");
}

template <class Sink>
bool JsonScanner<Sink>::read_literal(std::string_view literal) {
  if (!text_.substr(at_).starts_with(literal)) return refuse(at_, "not a value");
  sink_.literal(literal);
  at_ += literal.size();
  return value_done();
}

template <class Sink>
bool JsonScanner<Sink>::read_number() {
  const auto literal = scan_number(text_, at_);
  if (!literal) return refuse(literal.error());
  if (const auto taken = sink_.number(text_, *literal); !taken) return refuse(taken.error());
  at_ = literal->end;
  return value_done();
}

template <class Sink>
bool JsonScanner<Sink>::read_string_value() {
  const auto literal = scan_string(text_, at_);
  if (!literal) return refuse(literal.error());
  if (literal->plain) {
    sink_.string({.value = between_quotes(*literal), .plain = true});
  } else {
    decoded_.clear();
    if (const auto ok = decode_string(text_, *literal, decoded_); !ok) return refuse(ok.error());
    sink_.string({.value = decoded_, .plain = false});
  }
  at_ = literal->end + 1;
  return value_done();
}

template <class Sink>
bool JsonScanner<Sink>::read_name() {
  if (next() != '"') return refuse(at_, "not a name");
  const auto literal = scan_string(text_, at_);
  if (!literal) return refuse(literal.error());
  ScannedString name{.value = between_quotes(*literal), .plain = literal->plain};
  if (!name.plain) {
    // A name is not longer decoded than escaped, so all of them fit and views of them stay good.
    if (names_.empty()) names_.reserve(text_.size());
    const std::size_t begin = names_.size();
    if (const auto ok = decode_string(text_, *literal, names_); !ok) return refuse(ok.error());
    IDEM_ASSERT(names_.size() <= text_.size());
    name.value = std::string_view(names_).substr(begin);
  }
  members_.begin_member(name.value, at_, sink_.written());
  sink_.name(name);
  at_ = literal->end + 1;
  skip_space();
  if (at_ == text_.size() || next() != ':') return refuse(at_, "no colon after a name");
  ++at_;
  expect_ = Expect::value;
  return true;
}

template <class Sink>
bool JsonScanner<Sink>::read_separator() {
  const Container container = containers_[depth_ - 1];
  if (next() == (container == Container::object ? '}' : ']')) return close();
  if (next() != ',') return refuse(at_, "neither a comma nor the end of the container");
  ++at_;
  if (container == Container::object) members_.end_member(sink_.written());
  sink_.comma();
  expect_ = container == Container::object ? Expect::name : Expect::value;
  return true;
}

template <class Sink>
bool JsonScanner<Sink>::open(Container container) {
  if (depth_ == depth_max_) return refuse(at_, "nested too deeply");
  if (container == Container::object) members_.open_object(sink_.written());
  sink_.open(next());
  ++at_;
  containers_[depth_++] = container;
  expect_ = container == Container::object ? Expect::first_name : Expect::first_element;
  return true;
}

template <class Sink>
bool JsonScanner<Sink>::close() {
  if (containers_[depth_ - 1] == Container::object) {
    if (expect_ == Expect::separator) members_.end_member(sink_.written());
    if (const auto twin = members_.close_object(sink_.written() + 1)) {
      return refuse(*twin, "duplicate name");
    }
  }
  sink_.close(next());
  ++at_;
  --depth_;
  return value_done();
}

}  // namespace idem
