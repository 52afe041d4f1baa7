#pragma once

#include <idem/adapters/framing.hpp>
#include <idem/guard.hpp>

#include <httplib.h>

#include <expected>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// For services on cpp-httplib (0.11 and later): converts a request for a guard, and its answer
/// back. Header-only, and the only header that includes cpp-httplib. If cpp-httplib is a compiled
/// library (Debian), use the macros that it was compiled with (`pkg-config --cflags cpp-httplib`):
/// otherwise some of its classes have another size.
namespace idem::inline v0_1 {

/// `scope`: Request::scope, as the service has authenticated it.
///
/// The error is the answer to a request that cpp-httplib changes, so that another one could look
/// the same: 415 for multipart/form-data, whose body it splits, for a Content-Encoding, which it
/// decodes (to nothing if it cannot), and for a body that it did not read (GET); 400 for a Range,
/// by which it would cut the answer of any method.
///
/// cpp-httplib decodes `%41` in all field values before this function sees them, also in a key's.
[[nodiscard]] inline std::expected<Request, Response> to_idem(const httplib::Request& http,
                                                              std::string scope) {
  const auto refused = [](int status, std::string_view why) {
    return std::unexpected(
        Response{status,
                 {{"Content-Type", "application/problem+json"}},
                 "{\"type\":\"about:blank\",\"status\":" + std::to_string(status) +
                     ",\"detail\":\"" + std::string(why) + "\"}"});
  };
  const bool is_whole = !http.has_header("Content-Length") ||
                        http.get_header_value("Content-Length") == std::to_string(http.body.size());
  if (http.is_multipart_form_data() || http.has_header("Content-Encoding") || !is_whole) {
    return refused(415,
                   "This body cannot be read byte for byte. Nothing was executed. Send it without "
                   "multipart/form-data, without Content-Encoding, and not with GET.");
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
      http.set_header(name, value);  // Beside one of the same name.
    }
  }
  if (adapters::has_no_content(answer.status)) return;
  if (type.empty() && !answer.body.empty()) type = default_type;
  if (!type.empty()) http.set_content(answer.body, type);
}

}  // namespace idem::inline v0_1
