#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idem::check {

using Fields = std::vector<std::pair<std::string, std::string>>;

/// A request as a case writes it; what it says is sent as it stands, also where that is wrong.
struct Request {
  std::string method;
  std::string target;  ///< Path and query.
  Fields fields;       ///< Without Host, Content-Length and Connection.
  std::string body;

  /// Replaces the fields of this name by one.
  void set(std::string_view name, std::string value);
  void remove(std::string_view name);

  /// Its bytes. `authority`: for Host.
  std::string bytes(std::string_view authority) const;
};

/// What came back, read as leniently as clients read.
struct Answer {
  int status = 0;
  Fields fields;     ///< In order, with the names as they were sent.
  std::string body;  ///< Without its framing.
  std::string bytes;
  std::string excerpt;        ///< Of the body, masked, for sentences; empty: of `body` itself.
  std::size_t body_from = 0;  ///< Where the body begins in `bytes`.
  /// Content-Length, where one was sent; differs from the body's size where the framing is wrong.
  std::optional<std::size_t> length;

  /// The first of this name, case-insensitively; nullptr: there is none.
  const std::string* find(std::string_view name) const;
  std::vector<std::string> all(std::string_view name) const;
  /// Also of a 303 that says where the result is (RFC 9110, 15.4.4).
  bool is_success() const;
  /// As a reader sees it: the head as it came, and the body without its chunks.
  std::string decoded() const { return bytes.substr(0, body_from) + body; }
  bool is_refusal() const noexcept { return status >= 400 && status < 500; }
};

/// Reads an answer as its bytes arrive.
class AnswerReader {
 public:
  explicit AnswerReader(bool is_head_request = false) : has_no_body_(is_head_request) {}

  /// More bytes. True: the answer is whole.
  bool add(std::string_view bytes);
  /// The connection has ended. True: the answer is whole, since its body ends with it.
  bool end();
  /// Why the bytes are no answer; empty: they may be one.
  const std::string& failure() const noexcept { return failure_; }
  /// Of the answer, as far as it came.
  const std::string& bytes() const noexcept { return answer_.bytes; }
  Answer take() { return std::move(answer_); }

 private:
  bool read_head();
  bool read_body();
  bool read_chunks();
  bool fail(std::string why);

  bool has_no_body_;
  bool has_head_ = false;
  bool is_chunked_ = false;
  std::size_t searched_ = 0;    ///< No head ends before it.
  std::size_t chunk_from_ = 0;  ///< Where the next chunk begins; 0: the first one.
  std::string chunks_;
  std::string failure_;
  Answer answer_;
};

}  // namespace idem::check
