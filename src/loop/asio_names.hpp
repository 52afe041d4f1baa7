#pragma once

/// The names of Asio that headers mention. The files that use them include loop/asio.hpp.
namespace boost::asio {
class io_context;
namespace ip {
class address;
}
}  // namespace boost::asio

namespace boost::system {
class error_code;
}

namespace idem {

namespace asio = boost::asio;

class Socket;

}  // namespace idem
