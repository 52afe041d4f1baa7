#include "read_message.hpp"

#include <boost/asio/error.hpp>
#include <boost/beast/http/error.hpp>

namespace provider {

namespace http = boost::beast::http;

template <bool is_request>
Task read_message(Socket& socket, boost::beast::flat_buffer& buffer,
                  http::basic_parser<is_request>& parser, Until until,
                  boost::system::error_code& error) {
  constexpr std::size_t part_bytes = 65'536;
  error = {};
  while (!error && !(until == Until::head ? parser.is_header_done() : parser.is_done())) {
    if (buffer.size() > 0) {
      buffer.consume(parser.put(buffer.cdata(), error));
      if (error != http::error::need_more) continue;
      error = {};
    }
    const auto [cut, bytes] = co_await socket.async_read_some(buffer.prepare(part_bytes), token);
    buffer.commit(bytes);
    if (cut == asio::error::eof && parser.got_some()) {
      parser.put_eof(error);  // The end of a body that has no length.
    } else {
      error = cut;
    }
  }
}

template Task read_message(Socket&, boost::beast::flat_buffer&, http::basic_parser<true>&, Until,
                           boost::system::error_code&);
template Task read_message(Socket&, boost::beast::flat_buffer&, http::basic_parser<false>&, Until,
                           boost::system::error_code&);

}  // namespace provider
