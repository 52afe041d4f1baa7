#pragma once

#include <idem/adapters/framing.hpp>
#include <idem/guard.hpp>

#include <httplib.h>

#include <algorithm>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// For services on cpp-httplib (0.11 and later): converts a request for a guard, and its answer
/// back. Header-only, and the only header that includes cpp-httplib. If cpp-httplib is a compiled
/// library (Debian), use the macros that it was compiled with (`pkg-config --cflags cpp-httplib`):
/// otherwise some of its classes have another size.
namespace idem::inline v0_1 {

namespace adapters {

/// Whether the body is all that was sent, byte for byte.
inline bool has_whole_body(const httplib::Request& http) {
  if (http.is_multipart_form_data() || http.has_header("Content-Encoding")) return false;
  const std::string size = std::to_string(http.body.size());
  const auto [first, last] = http.headers.equal_range("Content-Length");
  if (!std::all_of(first, last, [&](const auto& line) { return line.second == size; })) {
    return false;
  }
  const auto codings = http.get_header_value_count("Transfer-Encoding");
  // Such a request has no body (RFC 9112 §6.3). cpp-httplib takes all bytes up to the end of the
  // connection for one: they may be a part of a body, or another request.
  if (codings == 0) return first != last || http.body.empty();
  // It undoes no other coding, and looks at one line only.
  if (codings > 1 || !same_name(http.get_header_value("Transfer-Encoding"), "chunked")) {
    return false;
  }
  // With another method it may not have read the chunks: 0.11 skips those of GET, 0.18 of DELETE.
  return !http.body.empty() || http.method == "POST" || http.method == "PUT" ||
         http.method == "PATCH";
}

/// Whether cpp-httplib's fields have the lines of one name in the reverse order. In an unordered
/// container C++ does not say where a new line goes among those of its name (libstdc++: first;
/// libc++: last), but it says that they keep their order when the container grows. So this function
/// tries it. It adds the lines by a function of cpp-httplib, because another standard library may
/// have compiled that one.
inline bool is_newest_first() {
  static const bool is = [] {
    httplib::Request tried;
    for (const char* const value : {"1", "2", "3"}) tried.set_header("Via", value);
    std::string order;
    for (const auto& line : tried.headers) order += line.second;
    return order == "321";
  }();
  return is;
}

/// Adds a line after those of its name. An unordered container may put it before them; so the
/// values are then put into the lines anew.
inline void add_field(httplib::Response& http, const std::string& name, const std::string& value) {
  std::vector<std::string> values;
  const auto [first, last] = http.headers.equal_range(name);
  for (auto line = first; line != last; ++line) values.push_back(line->second);
  http.set_header(name, value);
  // It refuses a value with a line end.
  if (values.empty() || http.headers.count(name) == values.size()) return;
  values.push_back(value);
  auto line = http.headers.equal_range(name).first;
  for (std::string& one : values) (line++)->second = std::move(one);
}

}  // namespace adapters

/// `scope`: Request::scope, as the service has authenticated it.
///
/// The error is the answer to a request that cpp-httplib changes, so that another one could look
/// the same: 415 for multipart/form-data, whose body it splits, for a Content-Encoding, which it
/// decodes (to nothing if it cannot), for a body that it may not have read (by its version, that of
/// GET or the chunks of DELETE), and for one whose end it did not know (no Content-Length,
/// different ones, or a Transfer-Encoding that is not `chunked`); 400 for a Range, by which it
/// would cut the answer of any method.
///
/// cpp-httplib decodes `%41` in all field values before this function sees them, also in a key's.
///
/// Lines of one name are in the order in which they came, on which a fingerprint of that field
/// depends. cpp-httplib 0.18 does not keep it; with libstdc++ and libc++ it can be restored. With a
/// standard library that orders them in a third way, they are as cpp-httplib has them.
[[nodiscard]] inline std::expected<Request, Response> to_idem(const httplib::Request& http,
                                                              std::string scope) {
  const auto refused = [](int status, std::string_view why) {
    return std::unexpected(
        Response{status,
                 {{"Content-Type", "application/problem+json"}},
                 "{\"type\":\"about:blank\",\"status\":" + std::to_string(status) +
                     ",\"detail\":\"" + std::string(why) + "\"}"});
  };
  if (!adapters::has_whole_body(http)) {
    return refused(415,
                   "This body cannot be read byte for byte. Nothing was executed. Send it by POST, "
                   "PUT or PATCH, with one Content-Length, without multipart/form-data, and "
                   "without Content-Encoding.");
  }
  if (!http.ranges.empty()) {
    return refused(400, "There are no ranges of this answer. Nothing was executed. Omit Range.");
  }
  Request request{http.method, http.target, {}, http.body, std::move(scope)};
  for (const auto& [name, value] : http.headers) {
    // Fields that cpp-httplib adds itself.
    const bool is_address = name == "REMOTE_ADDR" || name == "REMOTE_PORT" ||
                            name == "LOCAL_ADDR" || name == "LOCAL_PORT";
    if (!is_address) request.headers.push_back({name, value});
  }
  // All of them: the order of different names means nothing (RFC 9110 §5.3).
  if (adapters::is_newest_first()) std::ranges::reverse(request.headers);
  return request;
}

/// Sets status, fields and body. `default_type`: the Content-Type of a body whose answer names
/// none.
inline void to_http(const Response& answer, httplib::Response& http,
                    std::string_view default_type = "application/json") {
  http.status = answer.status;
  std::string type;
  for (const auto& [name, value] : answer.headers) {
    if (adapters::same_name(name, "Content-Type")) {
      type = value;
    } else if (!adapters::is_framing_field(name)) {
      adapters::add_field(http, name, value);
    }
  }
  if (adapters::has_no_content(answer.status)) return;
  if (type.empty() && !answer.body.empty()) type = default_type;
  if (!type.empty()) http.set_content(answer.body, type);
}

}  // namespace idem::inline v0_1
