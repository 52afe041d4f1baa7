#pragma once

#include <idem/adapters/framing.hpp>
#include <idem/guard.hpp>

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/verb.hpp>

#include <string>
#include <string_view>
#include <utility>

/// @file
/// For services on Boost.Beast (1.81 and later): converts a request for a guard, and its answer
/// back. Header-only, and the only header that includes Beast.
namespace idem::inline v0_1 {

/// `scope`: Request::scope, as the service has authenticated it.
[[nodiscard]] inline Request to_idem(
    const boost::beast::http::request<boost::beast::http::string_body>& http, std::string scope) {
  Request request{http.method_string(), http.target(), {}, http.body(), std::move(scope)};
  for (const auto& field : http.base()) {
    request.headers.push_back({field.name_string(), field.value()});
  }
  return request;
}

/// Sets status, fields and body, framing included; leaves version and keep_alive() as the service
/// has set them. `to_head`: the request is HEAD, whose answer only names its body's length.
/// `default_type`: the Content-Type of a body whose answer names none.
inline void to_http(const Response& answer,
                    boost::beast::http::response<boost::beast::http::string_body>& http,
                    bool to_head = false, std::string_view default_type = "application/json") {
  http.result(static_cast<unsigned>(answer.status));
  bool has_type = false;
  for (const auto& [name, value] : answer.headers) {
    if (adapters::is_framing_field(name)) continue;
    has_type = has_type || adapters::same_name(name, "Content-Type");
    http.insert(name, value);  // Beside one of the same name.
  }
  if (adapters::has_no_content(answer.status)) {
    http.body().clear();
    http.content_length(boost::none);
    http.chunked(false);
    return;
  }
  if (!has_type && !answer.body.empty()) {
    http.set(boost::beast::http::field::content_type, {default_type.data(), default_type.size()});
  }
  http.content_length(answer.body.size());
  http.body() = to_head ? std::string() : answer.body;
}

}  // namespace idem::inline v0_1
