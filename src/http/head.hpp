#pragma once

#include "core/bytes/ascii.hpp"

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Strict HTTP/1.1 message heads (RFC 9112), without I/O. Views point into the parsed buffer.
namespace idem::http {

/// Fields that the gateway itself reads; found once, while parsing.
enum class FieldName : std::uint8_t {
  other,
  authorization,
  connection,
  content_length,
  content_type,
  expect,
  host,
  idempotency_key,
  keep_alive,
  location,
  proxy_connection,
  retry_after,
  te,
  trailer,
  transfer_encoding,
  upgrade,
  via,
};

struct FieldView {
  std::string_view name;   ///< As received.
  std::string_view value;  ///< Without surrounding SP / HTAB.
  FieldName known = FieldName::other;
};

enum class Framing : std::uint8_t {
  none,            ///< No body.
  content_length,  ///< Exactly `content_length` bytes (0 is possible when the field was present).
  chunked,
  until_close,  ///< Responses only.
};

struct RequestHead {
  std::string_view method;
  std::string_view target;  ///< Exactly as received.
  /// What is forwarded and fingerprinted: path and query, byte for byte; for absolute-form the part
  /// after the authority ("/" where that is empty, with the query kept); "*" for `OPTIONS *`.
  std::string_view origin_form;
  std::string_view host;  ///< From the Host field, or from an absolute-form target (P2).
  int minor_version = 1;
  std::vector<FieldView> fields;
  Framing framing = Framing::none;
  std::uint64_t content_length = 0;
  bool keep_alive = true;
  bool expect_continue = false;
  bool upgrade = false;  ///< Upgrade field together with `Connection: upgrade`.
  /// Holds `origin_form` where no part of the buffer is it (`http://host?query`); empty otherwise.
  std::shared_ptr<const std::string> origin_copy;
};

struct ResponseHead {
  int status = 0;
  std::string_view reason;
  int minor_version = 1;
  std::vector<FieldView> fields;
  Framing framing = Framing::none;
  std::uint64_t content_length = 0;
  bool keep_alive = true;
};

/// Why a message was refused: the status to answer with and a sentence that names the rule. For
/// responses the status is always 502.
struct Refusal {
  int status = 400;
  std::string_view detail;  ///< Static text.
  bool stopping = false;    ///< With 503: the gateway is stopping.
};

/// The number of bytes of the head, or nothing when more bytes are needed, or a refusal. A refusal
/// may come before the head is complete (over a limit, a bare LF, a byte that can never be right).
using HeadResult = std::expected<std::optional<std::size_t>, Refusal>;

/// Parses a request head at the start of `buffer`. `out` is overwritten, its capacity kept. Empty
/// lines (CRLF) before the request line are skipped and counted in the size (RFC 9112 §2.2), two at
/// most. `scanned` remembers how far an incomplete head was searched; 0 for a new message.
HeadResult parse_request_head(std::string_view buffer, std::size_t& scanned, RequestHead& out);

/// Parses a response head; `request_method` decides whether a body can follow (P19).
HeadResult parse_response_head(std::string_view buffer, std::size_t& scanned,
                               std::string_view request_method, ResponseHead& out);

/// ASCII case-insensitive equality.
inline bool same_name(std::string_view a, std::string_view b) noexcept { return equal_names(a, b); }

/// Calls `visit(element)` for each non-empty member of a comma-separated list of tokens.
template <class Visit>
void each_list_member(std::string_view list, Visit visit);

/// Which fields stop at this hop (RFC 9110 §7.6.1): Connection, Keep-Alive,
/// Proxy-Connection, TE, Trailer, Transfer-Encoding, Upgrade, Content-Length (we frame anew), and
/// every field that a Connection field of `fields` names.
class HopByHop {
 public:
  explicit HopByHop(const std::vector<FieldView>& fields);
  bool drops(const FieldView& field) const noexcept;

 private:
  std::vector<std::string_view> named_;
};

/// The path of an origin-form target, without the query.
inline std::string_view path_of(std::string_view target) noexcept {
  return target.substr(0, target.find('?'));
}

/// A token by RFC 9110 §5.6.2.
bool is_token(std::string_view text) noexcept;
/// A field value that can be written out: no CR, LF, NUL or other control but HTAB; no outer space.
bool is_field_value(std::string_view text) noexcept;

template <class Visit>
void each_list_member(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    std::string_view member = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    while (!member.empty() && (member.front() == ' ' || member.front() == '\t'))
      member.remove_prefix(1);
    while (!member.empty() && (member.back() == ' ' || member.back() == '\t'))
      member.remove_suffix(1);
    if (!member.empty()) visit(member);
  }
}

}  // namespace idem::http
