#include "fuzz/other_parsers.hpp"

#include <http_parser.h>

namespace idem::fuzz {
namespace {

Reading& reading_of(http_parser* parser) { return *static_cast<Reading*>(parser->data); }

http_parser_settings settings() {
  http_parser_settings callbacks;
  http_parser_settings_init(&callbacks);
  callbacks.on_url = [](http_parser* parser, const char* at, std::size_t size) {
    reading_of(parser).target.append(at, size);
    return 0;
  };
  callbacks.on_body = [](http_parser* parser, const char* at, std::size_t size) {
    reading_of(parser).body.append(at, size);
    return 0;
  };
  // Asked for here: fields of a trailer section have their say about it later.
  callbacks.on_headers_complete = [](http_parser* parser) {
    reading_of(parser).keep_alive = http_should_keep_alive(parser) != 0;
    return 0;
  };
  callbacks.on_message_complete = [](http_parser* parser) {
    reading_of(parser).outcome = Outcome::complete;
    http_parser_pause(parser, 1);
    return 0;
  };
  return callbacks;
}

}  // namespace

bool http_parser_knows(std::string_view method) {
  for (int known = HTTP_DELETE; known <= HTTP_SOURCE; ++known) {
    if (method == http_method_str(static_cast<http_method>(known))) return true;
  }
  return false;
}

Reading read_with_http_parser(std::string_view stream) {
  static const http_parser_settings callbacks = settings();
  Reading reading;
  http_parser parser;
  http_parser_init(&parser, HTTP_REQUEST);
  parser.data = &reading;
  const auto bytes = http_parser_execute(&parser, &callbacks, stream.data(), stream.size());
  reading.method = http_method_str(static_cast<http_method>(parser.method));
  if (reading.outcome == Outcome::complete) {
    reading.bytes = bytes;
  } else if (HTTP_PARSER_ERRNO(&parser) != HPE_OK) {
    reading.outcome = Outcome::refused;
    reading.why = http_errno_name(HTTP_PARSER_ERRNO(&parser));
  }
  return reading;
}

}  // namespace idem::fuzz
