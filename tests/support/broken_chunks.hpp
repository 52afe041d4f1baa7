#pragma once

#include <string>
#include <vector>

namespace idem::test {

/// Chunked bodies that each break one rule of RFC 9112 §7.1 and are long enough to show it (P12).
inline std::vector<std::string> broken_chunks() {
  return {"10000000000000000\r\nab\r\n0\r\n\r\n",
          "8000000000000000\r\nab\r\n0\r\n\r\n",
          "-2\r\nab\r\n0\r\n\r\n",
          "0x2\r\nab\r\n0\r\n\r\n",
          "2 \r\nab\r\n0\r\n\r\n",
          "2\nab\r\n0\r\n\r\n",
          "2\r\nabc\r\n0\r\n\r\n",
          "2\r\nab\n0\r\n\r\n",
          "2;" + std::string(300, 'x') + "\r\nab\r\n0\r\n\r\n",
          "2\r\nab\r\n0\r\nbad trailer\r\n\r\n"};
}

}  // namespace idem::test
