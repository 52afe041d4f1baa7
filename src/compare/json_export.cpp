#include "compare/window.hpp"

#include <idem/worker_limits.hpp>

namespace idem::compare {
namespace {

using Pointers = std::vector<JsonPointer>;

std::expected<Pointers, BadLine> pointers_of(const std::vector<std::string>& fields) {
  Pointers pointers;
  for (const std::string& field : fields) {
    auto pointer = pointer_of(field);
    if (!pointer) return std::unexpected(BadLine{0, 0, std::move(pointer.error()), true});
    pointers.push_back(std::move(*pointer));
  }
  return pointers;
}

void read_values(std::string_view json, const Pointers& pointers, ExportLine& into) {
  into.values.clear();
  for (const JsonPointer& pointer : pointers) {
    const auto value = pointer.find(json);
    into.values.push_back(value ? scalar_of(*value) : std::nullopt);
  }
}

class JsonLines : public ExportReader {
 public:
  JsonLines(ReadBytes bytes, Pointers pointers)
      : window_(std::move(bytes)), pointers_(std::move(pointers)) {
    window_.skip_byte_order_mark();
  }

  std::expected<bool, BadLine> next(ExportLine& into) override {
    for (;;) {
      const std::uint64_t line = window_.line();
      if (window_.at(0) == Window::end) {
        if (!window_.trouble().empty()) {
          return std::unexpected(BadLine{line, 0, window_.trouble(), true});
        }
        if (auto cut = window_.last_line_cut()) return std::unexpected(std::move(*cut));
        return false;
      }
      const std::size_t end = window_.find("\n", 0, limits::export_line_bytes_max);
      if (end > limits::export_line_bytes_max) {
        window_.skip_line_behind(0);
        return std::unexpected(BadLine{line, 0, "is longer than a line may be"});
      }
      const bool is_whole = window_.at(end) != Window::end;
      if (!window_.trouble().empty()) {
        return std::unexpected(BadLine{line, 0, window_.trouble(), true});
      }
      json_ = window_.text(0, end);
      window_.take(is_whole ? end + 1 : end);
      if (json_.ends_with('\r')) json_.pop_back();
      if (json_.find_first_not_of(" \t") == json_.npos) continue;
      if (const auto good = check_json(json_); !good) {
        return std::unexpected(
            BadLine{line, good.error().offset + 1, std::string(good.error().what)});
      }
      if (json_[json_.find_first_not_of(" \t")] != '{') {
        return std::unexpected(BadLine{line, 1, "is no JSON object"});
      }
      into.line = line;
      into.raw = json_;
      read_values(json_, pointers_, into);
      return true;
    }
  }
  std::string json() const override { return json_; }

 private:
  Window window_;
  Pointers pointers_;
  std::string json_;
};

class List : public ExportReader {
 public:
  List(ListPages pages, Pointers pointers)
      : pages_(std::move(pages)), pointers_(std::move(pointers)) {}

  std::expected<bool, BadLine> next(ExportLine& into) override {
    while (at_ == items_.size()) {
      auto more = read_page();
      if (!more || !*more) return more;
    }
    const std::string_view item = items_[at_++];
    ++count_;
    if (item.front() != '{') return std::unexpected(BadLine{count_, 0, "is no JSON object"});
    into.line = count_;
    into.raw = item;
    read_values(item, pointers_, into);
    return true;
  }
  std::string json() const override { return std::string(items_[at_ - 1]); }

 private:
  std::expected<bool, BadLine> read_page() {
    const auto end = [&](std::string why) {
      return std::unexpected(BadLine{count_ + 1, 0, std::move(why), true});
    };
    auto page = pages_.next_page();
    if (!page) return end(std::move(page.error()));
    if (!*page) return false;
    page_ = std::move(**page);
    at_ = 0;
    items_.clear();
    if (const auto good = check_json(page_); !good) {
      return end("the page is no JSON: byte " + std::to_string(good.error().offset) + ": " +
                 std::string(good.error().what));
    }
    const auto array = pages_.items.find(page_);
    auto items = array ? items_of(*array) : std::nullopt;
    if (!items) return end("the page has no array at --items");
    items_ = std::move(*items);
    return true;
  }

  ListPages pages_;
  Pointers pointers_;
  std::string page_;
  std::vector<std::string_view> items_;  // Into page_.
  std::size_t at_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace

std::expected<std::unique_ptr<ExportReader>, BadLine> read_json_lines(
    ReadBytes bytes, const std::vector<std::string>& fields) {
  auto pointers = pointers_of(fields);
  if (!pointers) return std::unexpected(std::move(pointers.error()));
  return std::make_unique<JsonLines>(std::move(bytes), std::move(*pointers));
}

std::expected<std::unique_ptr<ExportReader>, BadLine> read_list(
    ListPages pages, const std::vector<std::string>& fields) {
  auto pointers = pointers_of(fields);
  if (!pointers) return std::unexpected(std::move(pointers.error()));
  return std::make_unique<List>(std::move(pages), std::move(*pointers));
}

std::expected<JsonPointer, std::string> pointer_of(const std::string& field) {
  if (field.empty() || field.front() == '/') return JsonPointer::parse(field);
  std::string escaped = "/";
  for (const char c : field) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return JsonPointer::parse(escaped);
}

}  // namespace idem::compare
