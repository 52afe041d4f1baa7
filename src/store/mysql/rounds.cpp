#include "store/mysql/rounds.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace idem::mysql {

bool is_connecting(int socket) noexcept {
  sockaddr_storage peer{};
  socklen_t bytes = sizeof peer;
  return ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0 &&
         errno == ENOTCONN;
}

}  // namespace idem::mysql
