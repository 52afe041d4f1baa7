#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace idem::json {

/// Writes one JSON text from front to back, with its commas. Bytes that are no UTF-8 become U+FFFD.
class Writer {
 public:
  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void name(std::string_view text);

  void text(std::string_view value);
  void boolean(bool value) { literal(value ? "true" : "false"); }
  void null() { literal("null"); }
  template <std::integral Number>
  void number(Number value) {
    literal(std::to_string(value));
  }

  void real(double value);
  /// A value that is JSON already.
  void json(std::string_view value) { literal(value); }

  /// `"name":"value"`
  void member(std::string_view name_, std::string_view value) {
    name(name_);
    text(value);
  }
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  void member(std::string_view name_, Number value) {
    name(name_);
    number(value);
  }
  void member(std::string_view name_, const char* value) { member(name_, std::string_view(value)); }
  void flag(std::string_view name_, bool value) {
    name(name_);
    boolean(value);
  }

  std::string take() { return std::move(out_); }

 private:
  void open(char bracket);
  void close(char bracket);
  void literal(std::string_view value);
  void separate();

  std::string out_;
  bool needs_comma_ = false;
};

}  // namespace idem::json
