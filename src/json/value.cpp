#include "json/value.hpp"

#include "core/json/scanner.hpp"

#include <idem/limits.hpp>

#include <array>
#include <charconv>
#include <optional>

namespace idem::json {

Value::Value() = default;
Value::Value(Any any) : is(std::move(any)) {}
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

const Value* Value::find(std::string_view name) const noexcept {
  const auto* members = std::get_if<Object>(&is);
  if (members == nullptr) return nullptr;
  for (const auto& member : *members) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

namespace {

template <class Number>
std::optional<Number> whole_number(std::string_view digits) noexcept {
  Number number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

// Makes one value of what the scanner reads. A container grows only while it is the innermost open
// one, so the places of those around it stay as they are.
class ValueBuilder {
 public:
  void begin(std::size_t) {}
  void literal(std::string_view literal) {
    Value& value = next();
    if (literal != "null") value.is = literal == "true";
  }
  std::expected<void, JsonError> number(std::string_view text, const NumberLiteral& literal) {
    const std::string_view digits = text.substr(literal.begin, literal.end - literal.begin);
    if (literal.integer) {
      if (const auto number = whole_number<std::int64_t>(digits)) {
        next().is = *number;
        return {};
      }
      if (const auto number = whole_number<std::uint64_t>(digits)) {
        next().is = *number;
        return {};
      }
    }
    const auto number = double_of(text, literal);
    if (!number) return std::unexpected(number.error());
    next().is = *number;
    return {};
  }
  void string(const ScannedString& string) { next().is.emplace<std::string>(string.value); }
  void name(const ScannedString& name) {
    std::get<Object>(open_[depth_ - 1]->is).push_back({std::string(name.value), Value()});
  }
  void open(char bracket) {
    Value& value = next();
    if (bracket == '{') {
      value.is.emplace<Object>();
    } else {
      value.is.emplace<Array>();
    }
    open_[depth_++] = &value;
  }
  void close(char) { --depth_; }
  void comma() {}
  std::size_t written() const noexcept { return 0; }

  Value take() { return std::move(root_); }

 private:
  // The null that the value which comes next replaces.
  Value& next() {
    if (depth_ == 0) return root_;
    auto& container = open_[depth_ - 1]->is;
    if (auto* const items = std::get_if<Array>(&container)) return items->emplace_back();
    return std::get<Object>(container).back().value;
  }

  Value root_;
  std::array<Value*, limits::json_depth_max> open_{};
  std::size_t depth_ = 0;
};

}  // namespace

std::expected<Value, ParseError> parse(std::string_view text) {
  return parse(text, limits::json_depth_max);
}

std::expected<Value, ParseError> parse(std::string_view text, std::size_t depth_max) {
  JsonScanner scanner(text, ValueBuilder(), depth_max);
  if (const auto accepted = scanner.run(); !accepted) {
    return std::unexpected(ParseError{accepted.error().offset, accepted.error().what});
  }
  return scanner.sink().take();
}

}  // namespace idem::json
