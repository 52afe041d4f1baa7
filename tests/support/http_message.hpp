#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The little HTTP/1.1 that tests need, written without a look at src/http: a test that shares the
/// product's parser shares its mistakes.
namespace idem::test {

struct Field {
  std::string name;
  std::string value;

  bool operator==(const Field&) const = default;
};

bool same_name(std::string_view a, std::string_view b);
/// The value of the first field with this name, upper and lower case alike.
std::optional<std::string> find_field(const std::vector<Field>& fields, std::string_view name);
std::size_t count_fields(const std::vector<Field>& fields, std::string_view name);

struct Head {
  std::string start_line;
  std::vector<Field> fields;
  std::size_t bytes = 0;  ///< Up to and including the empty line.
};

/// The head at the start of `bytes`; nothing while it is incomplete.
std::optional<Head> parse_head(std::string_view bytes);

struct Body {
  std::string content;
  std::size_t bytes = 0;  ///< On the wire, framing included.
};

/// A chunked body at the start of `bytes`; nothing while it is incomplete or when it is malformed.
std::optional<Body> parse_chunked(std::string_view bytes);

struct RequestMessage {
  Head head;
  std::string body;
  std::size_t bytes = 0;

  std::string method() const;
  std::string target() const;
};

/// A whole request at the start of `bytes`, framed as RFC 9112 §6.3 says.
std::optional<RequestMessage> parse_request(std::string_view bytes);

}  // namespace idem::test
