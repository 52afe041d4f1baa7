#include "compare/window.hpp"
#include "core/bytes/json_string.hpp"
#include "core/bytes/utf8.hpp"

#include <idem/worker_limits.hpp>

#include <set>

namespace idem::compare {
namespace {

class CsvReader : public ExportReader {
 public:
  explicit CsvReader(ReadBytes bytes) : window_(std::move(bytes)) {}

  std::expected<void, BadLine> read_header(const std::vector<std::string>& wanted) {
    window_.skip_byte_order_mark();
    auto read = read_record();
    if (!read || !*read) {
      BadLine bad = read ? BadLine{1, 0, "there is no line with the names of the columns"}
                         : std::move(read.error());
      bad.is_end = true;
      return std::unexpected(std::move(bad));
    }
    names_ = std::move(fields_);
    if (std::set<std::string>(names_.begin(), names_.end()).size() != names_.size()) {
      return std::unexpected(BadLine{1, 0, "two columns have one name", true});
    }
    for (const std::string& name : wanted) {
      const auto found = std::ranges::find(names_, name);
      if (found == names_.end()) {
        return std::unexpected(
            BadLine{1, 0, "there is no column " + name + "; there are " + all_names(), true});
      }
      columns_.push_back(static_cast<std::size_t>(found - names_.begin()));
    }
    return {};
  }

  std::expected<bool, BadLine> next(ExportLine& into) override {
    auto read = read_record();
    if (!read || !*read) return read;
    into.line = line_;
    into.raw = raw_;
    into.values.clear();
    for (const std::size_t column : columns_) {
      const std::string& value = fields_[column];
      into.values.push_back(value.empty() ? std::nullopt : std::optional(value));
    }
    return true;
  }

  std::string json() const override {
    std::string out = "{";
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (i > 0) out += ',';
      append_json_string(out, names_[i]);
      out += ':';
      append_json_string(out, fields_[i]);
    }
    return out + "}";
  }

 private:
  static constexpr std::size_t bytes_max = limits::export_line_bytes_max;

  std::string all_names() const {
    std::string all;
    for (const auto& name : names_) all += (all.empty() ? "" : ", ") + name;
    return all;
  }

  /// Returns an error; reading continues after the end of its line.
  std::unexpected<BadLine> bad(std::size_t offset, std::string what) {
    BadLine place = window_.place(offset, std::move(what));
    window_.skip_line_behind(offset);
    return std::unexpected(std::move(place));
  }

  std::expected<bool, BadLine> read_record() {
    for (;;) {  // Empty lines.
      const bool is_crlf = window_.at(0) == '\r' && window_.at(1) == '\n';
      if (!is_crlf && window_.at(0) != '\n') break;
      window_.take(is_crlf ? 2 : 1);
    }
    line_ = window_.line();
    if (window_.at(0) == Window::end) {
      if (!window_.trouble().empty()) {
        return std::unexpected(BadLine{line_, 0, window_.trouble(), true});
      }
      if (auto cut = window_.last_line_cut()) return std::unexpected(std::move(*cut));
      return false;
    }
    fields_.clear();
    std::size_t at = 0;
    for (;;) {
      fields_.emplace_back();
      if (fields_.size() > limits::export_columns_max) return bad(at, "has too many columns");
      auto behind = read_field(at, fields_.back());
      if (!behind) return std::unexpected(std::move(behind.error()));
      at = *behind;
      if (window_.at(at) != ',') break;
      ++at;
    }
    return finish_record(at);
  }

  std::expected<bool, BadLine> finish_record(std::size_t at) {
    if (!window_.trouble().empty()) {
      return std::unexpected(BadLine{line_, 0, window_.trouble(), true});
    }
    raw_ = window_.text(0, at);
    for (std::size_t i = 0; i < raw_.size();) {
      const std::size_t bytes = utf8_sequence(raw_, i);
      if (bytes == 0) return bad(i, "this is no UTF-8");
      i += bytes;
    }
    if (!names_.empty() && fields_.size() != names_.size()) {
      return bad(at, "has " + std::to_string(fields_.size()) + " fields, and the first line " +
                         std::to_string(names_.size()));
    }
    const int last = window_.at(at);
    window_.take(last == Window::end ? at : at + (last == '\r' ? 2 : 1));
    return true;
  }

  // The offset behind the field: of a comma, of the line's end or of the file's end.
  std::expected<std::size_t, BadLine> read_field(std::size_t at, std::string& field) {
    if (window_.at(at) == '"') return read_quoted(at, field);
    const std::size_t end = window_.find(",\"\r\n", at, bytes_max);
    if (end > bytes_max) return bad(at, "is longer than a line may be");
    if (window_.at(end) == '"')
      return bad(end, "a quote inside a field that does not begin with one");
    field = window_.text(at, end - at);
    return checked_end(end);
  }

  std::expected<std::size_t, BadLine> read_quoted(std::size_t quote, std::string& field) {
    for (std::size_t at = quote + 1;;) {
      const std::size_t end = window_.find("\"", at, bytes_max);
      if (end > bytes_max || window_.at(end) == Window::end) {
        return bad(quote, "nothing closes this quote");
      }
      field += window_.text(at, end - at);
      if (window_.at(end + 1) != '"') return checked_end(end + 1);
      field += '"';
      at = end + 2;
    }
  }

  std::expected<std::size_t, BadLine> checked_end(std::size_t at) {
    const int c = window_.at(at);
    if (c == '\r' && window_.at(at + 1) != '\n') return bad(at, "a carriage return alone");
    if (c == ',' || c == '\n' || c == '\r' || c == Window::end) return at;
    return bad(at, "there is text after a closing quote");
  }

  Window window_;
  std::vector<std::string> names_;
  std::vector<std::size_t> columns_;
  std::vector<std::string> fields_;
  std::string raw_;
  std::uint64_t line_ = 1;
};

}  // namespace

std::expected<std::unique_ptr<ExportReader>, BadLine> read_csv(
    ReadBytes bytes, const std::vector<std::string>& fields) {
  auto reader = std::make_unique<CsvReader>(std::move(bytes));
  if (auto good = reader->read_header(fields); !good) {
    return std::unexpected(std::move(good.error()));
  }
  return reader;
}

}  // namespace idem::compare
