#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>

#include "world.hpp"

namespace provider {

enum class Until { head, end };

/// Reads from the socket until the parser has the message's head, or all of it. Further bytes
/// stay in `buffer`. This replaces Beast's own operations, because their templates take longer to
/// compile than all else here. `is_request` is false for a response.
template <bool is_request>
Task read_message(Socket& socket, boost::beast::flat_buffer& buffer,
                  boost::beast::http::basic_parser<is_request>& parser, Until until,
                  boost::system::error_code& error);

}  // namespace provider
