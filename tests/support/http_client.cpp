#include "support/http_client.hpp"

#include <cstdlib>
#include <utility>

#include "support/admin_answers.hpp"

namespace idem::test {

std::string to_wire(const Request& request) {
  auto out = request.method + " " + request.target + " HTTP/1.1\r\n";
  if (!find_field(request.fields, "Host")) out += "Host: idem.test\r\n";
  for (const auto& field : request.fields) out += field.name + ": " + field.value + "\r\n";
  const bool wants_length = !request.body.empty() || request.method == "POST" ||
                            request.method == "PUT" || request.method == "PATCH";
  if (wants_length && !find_field(request.fields, "Content-Length") &&
      !find_field(request.fields, "Transfer-Encoding")) {
    out += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  }
  return out + "\r\n" + request.body;
}

bool Connection::send(const Request& request) { return send_raw(to_wire(request)); }

bool Connection::fill() {
  switch (socket_.receive(buffer_)) {
    case Socket::Received::bytes:
      return true;
    case Socket::Received::end:
      trouble_ = "closed";
      return false;
    case Socket::Received::reset:
      trouble_ = "reset";
      return false;
    case Socket::Received::timeout:
      trouble_ = "timeout";
      return false;
  }
  return false;
}

bool Connection::read_body(Response& response, bool to_head, std::size_t head_bytes) {
  if (to_head || response.status == 204 || response.status == 304) return true;
  const auto rest = [&] { return std::string_view(buffer_).substr(head_bytes); };
  if (response.get("Transfer-Encoding")) {
    auto body = parse_chunked(rest());
    while (!body) {
      if (!fill()) return false;
      body = parse_chunked(rest());
    }
    response.body = body->content;
    response.raw += rest().substr(0, body->bytes);
    return true;
  }
  const auto length = response.get("Content-Length");
  if (!length) {
    while (fill()) {
    }
    response.body = rest();
    response.raw += response.body;
    return trouble_ == "closed";
  }
  const auto size = static_cast<std::size_t>(std::strtoull(length->c_str(), nullptr, 10));
  while (rest().size() < size) {
    if (!fill()) return false;
  }
  response.body = rest().substr(0, size);
  response.raw += response.body;
  return true;
}

Response Connection::read_response(bool to_head) {
  Response response;
  for (;;) {
    auto head = parse_head(buffer_);
    while (!head) {
      if (!fill()) return {.trouble = trouble_};
      head = parse_head(buffer_);
    }
    const auto space = head->start_line.find(' ');
    if (!head->start_line.starts_with("HTTP/1.1 ")) return {.trouble = "no HTTP/1.1 answer"};
    response.status = std::atoi(head->start_line.c_str() + space + 1);
    if (response.status >= 100 && response.status < 200) {
      response.interim.push_back(response.status);
      buffer_.erase(0, head->bytes);
      continue;
    }
    const auto reason_at = head->start_line.find(' ', space + 1);
    if (reason_at != std::string::npos) response.reason = head->start_line.substr(reason_at + 1);
    response.fields = head->fields;
    response.raw = buffer_.substr(0, head->bytes);
    if (!read_body(response, to_head, head->bytes)) {
      response.status = 0;
      response.trouble = "cut: " + trouble_;
    }
    buffer_.erase(0, response.raw.size());
    return response;
  }
}

Response Connection::exchange(const Request& request) {
  if (!open()) return {.trouble = "refused"};
  send(request);  // A failed send may still have an answer waiting, so read in any case.
  return read_response(request.method == "HEAD");
}

std::string Connection::read_until_close() {
  while (fill()) {
  }
  return std::exchange(buffer_, {});
}

bool Connection::closed_by_peer() { return buffer_.empty() && !fill() && trouble_ != "timeout"; }

Response send_once(std::string_view address, const Request& given) {
  Request request = given;
  const std::string login = operator_login(address);
  if (!login.empty() && !find_field(request.fields, "Authorization")) {
    request.fields.push_back({"Authorization", login});
  }
  Connection connection(address);
  Response response = connection.exchange(request);
  note_answer(address, request, response);
  return response;
}

Response send_once(std::string_view address, const TlsSide& side, const Request& request) {
  Connection connection(address, side);
  return connection.exchange(request);
}

}  // namespace idem::test
