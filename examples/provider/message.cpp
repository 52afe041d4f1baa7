#include "message.hpp"

#include <fmt/format.h>

#include <ctime>
#include <utility>

namespace provider {
namespace {

std::string date_now() {
  static std::time_t second = 0;
  static char text[64];
  if (const auto now = std::time(nullptr); now != second) {
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    second = now;
  }
  return text;
}

}  // namespace

Reply json_reply(int status, std::string body) {
  return {
      .status = status, .fields = "Content-Type: application/json\r\n", .body = std::move(body)};
}

std::string field(const Request& request, std::string_view name) {
  std::string all;
  const auto [first, last] = request.equal_range(name);
  for (auto it = first; it != last; ++it) {
    if (it != first) all += ", ";
    all += std::string_view(it->value());
  }
  return all;
}

std::string_view path_of(const Request& request) {
  const std::string_view target(request.target());
  return target.substr(0, target.find('?'));
}

std::string to_bytes(const Reply& reply, bool head_request) {
  if (reply.wire == Wire::dropped) return {};
  if (reply.wire == Wire::garbage) return "\x16\x03\x01 this is no HTTP\r\n\r\n";
  const auto reason = http::obsolete_reason(static_cast<http::status>(reply.status));
  auto out =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n{}{}", reply.status, std::string_view(reason),
                  date_now(), reply.fields, reply.close ? "Connection: close\r\n" : "");
  if (reply.status == 204 || reply.status == 304) return out + "\r\n";
  const auto half = reply.body.substr(0, reply.body.size() / 2);
  const auto rest = reply.body.substr(half.size());
  const bool chunked = reply.wire == Wire::chunked || reply.wire == Wire::truncated_chunked;
  if (chunked) {
    out += "Transfer-Encoding: chunked\r\n\r\n";
  } else if (reply.wire == Wire::until_close) {
    out += "\r\n";
  } else {
    out += fmt::format("Content-Length: {}\r\n\r\n", reply.body.size());
  }
  if (head_request) return out;
  if (!chunked) return out + (reply.wire == Wire::truncated ? half : reply.body);
  if (!half.empty()) out += fmt::format("{:x}\r\n{}\r\n", half.size(), half);
  if (reply.wire == Wire::truncated_chunked) return out;
  if (!rest.empty()) out += fmt::format("{:x}\r\n{}\r\n", rest.size(), rest);
  return out + "0\r\n\r\n";
}

std::uint64_t digest_of(std::string_view bytes, std::uint64_t digest) {
  for (const unsigned char c : bytes) digest = (digest ^ c) * 1099511628211U;
  return digest;
}

}  // namespace provider
