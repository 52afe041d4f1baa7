#include "gateway/kept_head.hpp"

#include <idem/assert.hpp>

namespace idem::gateway {

std::size_t KeptHead::bytes_of(const http::RequestHead& head) noexcept {
  std::size_t bytes = head.method.size() + head.target.size() + head.origin_form.size() +
                      head.host.size() + head.fields.size() * sizeof(http::FieldView);
  for (const auto& field : head.fields) bytes += field.name.size() + field.value.size();
  return bytes;
}

KeptHead::KeptHead(const http::RequestHead& head) {
  text_.reserve(bytes_of(head));  // So that no view loses its bytes.
  head_.method = keep(head.method);
  head_.target = keep(head.target);
  head_.origin_form = keep(head.origin_form);
  head_.host = keep(head.host);
  head_.minor_version = head.minor_version;
  head_.fields.reserve(head.fields.size());
  for (const auto& field : head.fields) {
    const auto name = keep(field.name);
    head_.fields.push_back({name, keep(field.value), field.known});
  }
  head_.framing = head.framing;
  head_.content_length = head.content_length;
  head_.keep_alive = head.keep_alive;
  head_.expect_continue = head.expect_continue;
  head_.upgrade = head.upgrade;
}

std::string_view KeptHead::keep(std::string_view text) {
  IDEM_ASSERT(text_.size() + text.size() <= text_.capacity());
  const std::size_t at = text_.size();
  text_ += text;
  return {text_.data() + at, text.size()};
}

}  // namespace idem::gateway
