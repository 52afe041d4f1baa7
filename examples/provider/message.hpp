#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "faults.hpp"

namespace provider {

namespace http = boost::beast::http;

using Request = http::request<http::string_body>;

struct Reply {
  int status = 200;
  std::string fields{};  ///< Whole lines.
  std::string body{};
  Wire wire = Wire::whole;
  bool close = false;
};

/// An answer that is JSON.
Reply json_reply(int status, std::string body);

/// All lines of this name, so that a field sent twice is visible.
std::string field(const Request& request, std::string_view name);
/// The target up to its query.
std::string_view path_of(const Request& request);

/// The answer's bytes, changed as its `wire` says.
std::string to_bytes(const Reply& reply, bool head_request);

/// FNV-1a, to distinguish bodies; not secure. Continues from `digest`.
std::uint64_t digest_of(std::string_view bytes, std::uint64_t digest = 14695981039346656037U);

}  // namespace provider
