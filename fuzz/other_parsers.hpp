#pragma once

#include <string>
#include <string_view>

/// HTTP parsers that others wrote, each behind the same small face.
namespace idem::fuzz {

enum class Outcome { refused, incomplete, complete };

/// A parser's result for the first request of a stream.
struct Reading {
  Outcome outcome = Outcome::incomplete;
  std::string method;
  std::string target;
  std::string body;  ///< As much of it as there was.
  bool keep_alive = false;
  std::size_t bytes = 0;  ///< Of the whole message; 0 until it is complete.
  std::string why;        ///< The refusal's name.
};

/// http_parser 2.9.4, which Node.js had before llhttp. It knows the methods of a list only.
bool http_parser_knows(std::string_view method);
Reading read_with_http_parser(std::string_view stream);

/// Boost.Beast.
Reading read_with_beast(std::string_view stream);

}  // namespace idem::fuzz
