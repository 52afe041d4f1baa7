#include "check/wire/message.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace idem::check {
namespace {

// An answer to a test payment has some hundred bytes. A race keeps a hundred of them.
constexpr std::size_t answer_bytes_max = 1024UL * 1024;
constexpr std::string_view line_end = "\r\n";

bool is_same(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view trimmed_field(std::string_view text) {
  const auto from = text.find_first_not_of(" \t\r");
  if (from == text.npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

std::optional<std::size_t> number_of(std::string_view text, int base = 10) {
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number, base);
  if (parsed.ec != std::errc{} || parsed.ptr != end || text.empty()) return std::nullopt;
  return number;
}

}  // namespace

void Request::set(std::string_view name, std::string value) {
  remove(name);
  fields.emplace_back(name, std::move(value));
}

void Request::remove(std::string_view name) {
  std::erase_if(fields, [&](const auto& field) { return is_same(field.first, name); });
}

std::string Request::bytes(std::string_view authority) const {
  std::string text = method + ' ' + target + " HTTP/1.1\r\n";
  text += "Host: " + std::string(authority) + "\r\n";
  for (const auto& [name, value] : fields) text += name + ": " + value + "\r\n";
  if (!body.empty() || method == "POST" || method == "PUT" || method == "PATCH") {
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  return text + "Connection: close\r\n\r\n" + body;
}

const std::string* Answer::find(std::string_view name) const {
  const auto found =
      std::ranges::find_if(fields, [&](const auto& field) { return is_same(field.first, name); });
  return found == fields.end() ? nullptr : &found->second;
}

bool Answer::is_success() const {
  return (status >= 200 && status < 300) || (status == 303 && find("Location") != nullptr);
}

std::vector<std::string> Answer::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [one, value] : fields) {
    if (is_same(one, name)) values.push_back(value);
  }
  return values;
}

bool AnswerReader::fail(std::string why) {
  failure_ = std::move(why);
  return false;
}

bool AnswerReader::add(std::string_view bytes) {
  answer_.bytes += bytes;
  if (answer_.bytes.size() > answer_bytes_max) return fail("the answer is longer than 1 MiB");
  if (!has_head_ && !read_head()) return false;
  return read_body();
}

bool AnswerReader::end() {
  if (!failure_.empty()) return false;
  if (answer_.bytes.empty()) return fail("the connection was closed without an answer");
  if (!has_head_) return fail("the connection was closed within the head of the answer");
  if (is_chunked_) return fail("the connection was closed within a chunked body");
  if (answer_.length && answer_.bytes.size() - answer_.body_from < *answer_.length) {
    return fail("the connection was closed within the body of the answer");
  }
  answer_.body = answer_.bytes.substr(answer_.body_from);
  return true;
}

// Interim answers (RFC 9110, 15.2) stay in `bytes`, and are passed over.
bool AnswerReader::read_head() {
  for (std::size_t from = answer_.body_from;;) {
    // Its last bytes may be the beginning of the blank line.
    const auto end = answer_.bytes.find("\r\n\r\n", std::max(from, searched_));
    if (end == std::string::npos) {
      searched_ = answer_.bytes.size() - std::min<std::size_t>(answer_.bytes.size(), 3);
      return false;
    }
    std::string_view head(answer_.bytes);
    head = head.substr(from, end - from);
    const auto first = head.substr(0, head.find(line_end));
    if (!first.starts_with("HTTP/1.") || first.size() < 12) {
      return fail("what came back is no answer of HTTP/1.1");
    }
    const auto status = number_of(first.substr(9, 3));
    if (!status) return fail("the answer has no status");
    answer_.body_from = end + 4;
    if (*status < 200 && *status != 101) {
      from = answer_.body_from;
      continue;
    }
    answer_.status = static_cast<int>(*status);
    for (auto at = first.size(); at < head.size();) {
      at += line_end.size();
      const auto line = head.substr(at, head.find(line_end, at) - at);
      const auto colon = line.find(':');
      if (colon != line.npos) {
        answer_.fields.emplace_back(line.substr(0, colon), trimmed_field(line.substr(colon + 1)));
      }
      at += line.size();
    }
    has_head_ = true;
    const auto* const length = answer_.find("Content-Length");
    if (length != nullptr) answer_.length = number_of(*length);
    const auto* const coding = answer_.find("Transfer-Encoding");
    is_chunked_ = coding != nullptr && is_same(trimmed_field(*coding), "chunked");
    has_no_body_ = has_no_body_ || *status == 204 || *status == 304;
    return true;
  }
}

bool AnswerReader::read_body() {
  if (has_no_body_) return true;
  if (is_chunked_) return read_chunks();
  if (!answer_.length) return false;  // Until the connection ends.
  if (answer_.bytes.size() - answer_.body_from < *answer_.length) return false;
  answer_.body = answer_.bytes.substr(answer_.body_from, *answer_.length);
  return true;
}

// Each chunk is read once, whatever number of them comes.
bool AnswerReader::read_chunks() {
  if (chunk_from_ == 0) chunk_from_ = answer_.body_from;
  for (std::size_t at = chunk_from_;; chunk_from_ = at) {
    const auto end = answer_.bytes.find(line_end, at);
    if (end == std::string::npos) return false;
    std::string_view line(answer_.bytes);
    line = line.substr(at, end - at);
    const auto size = number_of(trimmed_field(line.substr(0, line.find(';'))), 16);
    if (!size) return fail("a chunk of the answer has no size");
    if (*size > answer_bytes_max) return fail("a chunk of the answer has no end");
    at = end + line_end.size();
    if (*size == 0) {
      if (answer_.bytes.find(line_end, at) == std::string::npos) return false;
      answer_.body = std::move(chunks_);
      return true;
    }
    if (answer_.bytes.size() < at + *size + line_end.size()) return false;
    chunks_.append(answer_.bytes, at, *size);
    at += *size + line_end.size();
  }
}

}  // namespace idem::check
