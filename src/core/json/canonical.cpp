#include <idem/json.hpp>

#include "core/json/members.hpp"
#include "core/json/number.hpp"
#include "core/json/string.hpp"

#include <idem/assert.hpp>
#include <idem/limits.hpp>

#include <array>

namespace idem::inline v0_1 {
namespace {

// Keeps every position of the written text within 32 bits: the worst growth is `1e20,` to 22 bytes.
constexpr std::size_t text_bytes_max = std::size_t{512} << 20;
static_assert(text_bytes_max >= limits::request_body_bytes_cap);

// One pass over the text that checks it and writes it in canonical spelling, but in source order;
// JsonMembers then puts the members in order. A fixed array holds the open containers: no
// recursion.
class Canonicaliser {
 public:
  Canonicaliser(std::string_view text, NumberForm form) : text_(text), form_(form) {}

  std::expected<std::string, JsonError> run();

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

  void skip_space() noexcept;
  bool value_done() noexcept;
  bool refuse(std::size_t offset, std::string_view what) noexcept;
  bool refuse(const JsonError& error) noexcept { return refuse(error.offset, error.what); }
  char next() const noexcept { return text_[at_]; }

  std::string_view text_;
  NumberForm form_;
  std::size_t at_ = 0;
  Expect expect_ = Expect::value;
  std::array<Container, limits::json_depth_max> containers_{};
  std::size_t depth_ = 0;
  std::string out_;
  JsonMembers members_;
  std::string names_;    // decoded names that had escapes; never moves once it holds one
  std::string decoded_;  // one value at a time
  JsonError error_;
};

std::expected<std::string, JsonError> Canonicaliser::run() {
  if (text_.size() > text_bytes_max) return std::unexpected(JsonError{0, "text too long"});
  out_.reserve(text_.size());
  for (skip_space(); at_ < text_.size(); skip_space()) {
    if (!step()) return std::unexpected(error_);
  }
  if (expect_ != Expect::end) return std::unexpected(JsonError{at_, "unexpected end"});
  return members_.in_order(std::move(out_));
}

bool Canonicaliser::step() {
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

bool Canonicaliser::read_value() {
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

bool Canonicaliser::read_literal(std::string_view literal) {
  if (!text_.substr(at_).starts_with(literal)) return refuse(at_, "not a value");
  out_ += literal;
  at_ += literal.size();
  return value_done();
}

bool Canonicaliser::read_number() {
  const auto literal = scan_number(text_, at_);
  if (!literal) return refuse(literal.error());
  const auto written = append_number(out_, text_, *literal, form_);
  if (!written) return refuse(written.error());
  at_ = literal->end;
  return value_done();
}

bool Canonicaliser::read_string_value() {
  const auto literal = scan_string(text_, at_);
  if (!literal) return refuse(literal.error());
  if (literal->plain) {
    out_.append(text_, at_, literal->end + 1 - at_);
  } else {
    decoded_.clear();
    if (const auto ok = decode_string(text_, *literal, decoded_); !ok) return refuse(ok.error());
    append_quoted(out_, decoded_);
  }
  at_ = literal->end + 1;
  return value_done();
}

bool Canonicaliser::read_name() {
  if (next() != '"') return refuse(at_, "not a name");
  const auto literal = scan_string(text_, at_);
  if (!literal) return refuse(literal.error());
  const std::size_t written = out_.size();
  std::string_view name = text_.substr(literal->begin, literal->end - literal->begin);
  if (literal->plain) {
    out_.append(text_, at_, literal->end + 1 - at_);
  } else {
    // A name is not longer decoded than escaped, so all of them fit and views of them stay good.
    if (names_.empty()) names_.reserve(text_.size());
    const std::size_t begin = names_.size();
    if (const auto ok = decode_string(text_, *literal, names_); !ok) return refuse(ok.error());
    IDEM_ASSERT(names_.size() <= text_.size());
    name = std::string_view(names_).substr(begin);
    append_quoted(out_, name);
  }
  members_.begin_member(name, at_, written);
  at_ = literal->end + 1;
  skip_space();
  if (at_ == text_.size() || next() != ':') return refuse(at_, "no colon after a name");
  ++at_;
  out_ += ':';
  expect_ = Expect::value;
  return true;
}

bool Canonicaliser::read_separator() {
  const Container container = containers_[depth_ - 1];
  if (next() == (container == Container::object ? '}' : ']')) return close();
  if (next() != ',') return refuse(at_, "neither a comma nor the end of the container");
  ++at_;
  if (container == Container::object) members_.end_member(out_.size());
  out_ += ',';
  expect_ = container == Container::object ? Expect::name : Expect::value;
  return true;
}

bool Canonicaliser::open(Container container) {
  if (depth_ == containers_.size()) return refuse(at_, "nested too deeply");
  if (container == Container::object) members_.open_object(out_.size());
  out_ += next();
  ++at_;
  containers_[depth_++] = container;
  expect_ = container == Container::object ? Expect::first_name : Expect::first_element;
  return true;
}

bool Canonicaliser::close() {
  if (containers_[depth_ - 1] == Container::object) {
    if (expect_ == Expect::separator) members_.end_member(out_.size());
    if (const auto twin = members_.close_object(out_.size() + 1)) {
      return refuse(*twin, "duplicate name");
    }
  }
  out_ += next();
  ++at_;
  --depth_;
  return value_done();
}

void Canonicaliser::skip_space() noexcept {
  while (at_ < text_.size() &&
         (next() == ' ' || next() == '\n' || next() == '\r' || next() == '\t')) {
    ++at_;
  }
}

bool Canonicaliser::value_done() noexcept {
  expect_ = depth_ == 0 ? Expect::end : Expect::separator;
  return true;
}

bool Canonicaliser::refuse(std::size_t offset, std::string_view what) noexcept {
  error_ = {offset, what};
  return false;
}

}  // namespace

std::expected<std::string, JsonError> canonicalize(std::string_view text) {
  return Canonicaliser(text, NumberForm::ecmascript).run();
}

std::expected<std::string, JsonError> fingerprint_form(std::string_view text) {
  return Canonicaliser(text, NumberForm::exact).run();
}

}  // namespace idem::inline v0_1
