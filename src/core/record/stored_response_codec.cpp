#include "core/record/stored_response_codec.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"
#include "core/bytes/digests.hpp"

namespace idem {
namespace {

constexpr std::size_t response_head_bytes = 1 + 2 + 1;

std::expected<StoredResponse, std::string_view> read_head(ByteReader& in) {
  if (in.is_at_end()) return std::unexpected("its answer is empty");
  if (in.number<std::uint8_t>() != stored_answer_version) {
    return std::unexpected("its answer is of a version that this program does not know");
  }
  StoredResponse response;
  response.status = in.number<std::uint16_t>();
  const auto body_stored = in.number<std::uint8_t>();
  response.body_stored = body_stored != 0;
  if (in.is_cut_short()) return std::unexpected("its answer is cut short");
  if (response.status < 100 || response.status > 999) {
    return std::unexpected("its answer has no valid status");
  }
  if (body_stored > 1) return std::unexpected("its answer has unknown flags");
  return response;
}

}  // namespace

std::size_t encoded_bytes(const StoredResponse& response) noexcept {
  std::size_t size = response_head_bytes;
  for (const Field& field : response.headers) {
    size += framed_bytes(field.name) + framed_bytes(field.value);
  }
  return size;
}

void encode_answer(const StoredResponse& response, std::string& out) {
  const std::size_t size = encoded_bytes(response);
  out.resize_and_overwrite(size, [&](char* bytes, std::size_t) {
    ByteWriter to(bytes);
    to.number(stored_answer_version);
    to.number(static_cast<std::uint16_t>(response.status));
    to.number(static_cast<std::uint8_t>(response.body_stored ? 1 : 0));
    for (const Field& field : response.headers) {
      to.framed(field.name);
      to.framed(field.value);
    }
    return static_cast<std::size_t>(to.at() - bytes);
  });
}

std::expected<StoredResponse, std::string_view> decode_answer(std::string_view bytes) {
  ByteReader in(bytes);
  auto response = read_head(in);
  if (!response) return response;
  while (!in.is_at_end()) {
    const std::string_view name = in.framed();
    const std::string_view value = in.framed();
    if (in.is_cut_short()) return std::unexpected("its answer is cut short");
    response->headers.emplace_back(std::string(name), std::string(value));
  }
  return response;
}

void encode_checked_answer(const RecordId& id, const StoredResponse& response, std::string& out) {
  encode_answer(response, out);
  append_checksum(id, out, response.body);
}

std::expected<StoredResponse, std::string_view> decode_checked_answer(const RecordId& id,
                                                                      std::string_view bytes,
                                                                      std::string_view body) {
  const auto sound = without_checksum(id, bytes, body);
  if (!sound) return std::unexpected("its answer's checksum does not match");
  auto response = decode_answer(*sound);
  if (response) response->body = body;
  return response;
}

std::array<std::uint8_t, 32> digest_of_stored(const StoredResponse& response) {
  std::string head;
  encode_answer(response, head);
  FramedDigest digest;
  digest.add(head);
  digest.add_bytes(response.body);
  return digest.finish();
}

std::array<std::uint8_t, 32> digest_of_stored(std::string_view request) { return sha256(request); }

std::expected<StoredResponse, std::string_view> decode_status(std::string_view bytes) {
  ByteReader in(bytes);
  return read_head(in);
}

}  // namespace idem
