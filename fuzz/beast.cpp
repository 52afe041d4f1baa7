#include "fuzz/other_parsers.hpp"

#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/http/dynamic_body.hpp>
#include <boost/beast/http/parser.hpp>

namespace idem::fuzz {

namespace beast_http = boost::beast::http;

Reading read_with_beast(std::string_view stream) {
  // Not a string as body: that would be reserved as long as the Content-Length says.
  beast_http::request_parser<beast_http::dynamic_body> parser;
  parser.header_limit(1U << 20);
  parser.body_limit(boost::none);
  Reading reading;
  boost::beast::error_code error;
  std::size_t bytes = 0;
  // It does not skip the empty lines of RFC 9112 §2.2.
  while (stream.substr(bytes).starts_with("\r\n")) bytes += 2;
  while (!parser.is_done()) {
    // Stops behind the head, so that fields of a trailer section have no say about the connection.
    parser.eager(parser.is_header_done());
    const auto taken =
        parser.put(boost::asio::const_buffer(stream.data() + bytes, stream.size() - bytes), error);
    bytes += taken;
    if (error || taken == 0) break;
    if (!parser.eager()) reading.keep_alive = parser.keep_alive();
  }
  const auto& request = parser.get();
  reading.method = std::string_view(request.method_string().data(), request.method_string().size());
  reading.target = std::string_view(request.target().data(), request.target().size());
  reading.body = boost::beast::buffers_to_string(request.body().data());
  if (parser.is_done()) {
    reading.outcome = Outcome::complete;
    reading.bytes = bytes;
  } else if (error && error != beast_http::error::need_more) {
    reading.outcome = Outcome::refused;
    reading.why = error.message();
  }
  return reading;
}

}  // namespace idem::fuzz
