#include <idem/json.hpp>

#include "core/bytes/json_string.hpp"
#include "core/json/number.hpp"
#include "core/json/scanner.hpp"

namespace idem::inline v0_1 {
namespace {

// Writes what the scanner reads in canonical spelling, but in the order of the text; JsonMembers
// then puts the members in order.
class CanonicalText {
 public:
  explicit CanonicalText(NumberForm form) : form_(form) {}

  void begin(std::size_t text_bytes) { out_.reserve(text_bytes); }
  void literal(std::string_view literal) { out_ += literal; }
  std::expected<void, JsonError> number(std::string_view text, const NumberLiteral& literal) {
    return append_number(out_, text, literal, form_);
  }
  void string(const ScannedString& string) {
    if (string.plain) {
      out_ += string.quoted();
    } else {
      append_json_string(out_, string.value);
    }
  }
  void name(const ScannedString& name) {
    string(name);
    out_ += ':';
  }
  void open(char bracket) { out_ += bracket; }
  void close(char bracket) { out_ += bracket; }
  void comma() { out_ += ','; }
  std::size_t written() const noexcept { return out_.size(); }

  std::string take() { return std::move(out_); }

 private:
  NumberForm form_;
  std::string out_;
};

std::expected<std::string, JsonError> canonical_text(std::string_view text, NumberForm form) {
  JsonScanner scanner(text, CanonicalText(form));
  if (const auto accepted = scanner.run(); !accepted) return std::unexpected(accepted.error());
  return scanner.members().in_order(scanner.sink().take());
}

}  // namespace

std::expected<std::string, JsonError> canonicalize(std::string_view text) {
  return canonical_text(text, NumberForm::ecmascript);
}

std::expected<std::string, JsonError> fingerprint_form(std::string_view text) {
  return canonical_text(text, NumberForm::exact);
}

}  // namespace idem::inline v0_1
