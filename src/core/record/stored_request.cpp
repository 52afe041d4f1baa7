#include "core/record/stored_request.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/digests.hpp"

namespace idem {
namespace {

constexpr std::uint8_t request_version = 1;
constexpr std::uint8_t secrets_version = 1;
constexpr std::string_view request_cut_short = "it is cut short";
constexpr std::string_view too_long = "it has bytes behind its end";

std::size_t bytes_of(const std::vector<StoredField>& fields) {
  std::size_t bytes = sizeof(std::uint16_t);
  for (const auto& [name, value] : fields) bytes += framed_bytes(name) + framed_bytes(value);
  return bytes;
}

void write(ByteWriter& to, const std::vector<StoredField>& fields) {
  to.number(static_cast<std::uint16_t>(fields.size()));
  for (const auto& [name, value] : fields) {
    to.framed(name);
    to.framed(value);
  }
}

std::vector<StoredField> read_fields(ByteReader& in) {
  std::vector<StoredField> fields;
  const auto count = in.number<std::uint16_t>();
  for (std::size_t i = 0; i < count && !in.is_cut_short(); ++i) {
    const std::string_view name = in.framed();
    const std::string_view value = in.framed();
    fields.emplace_back(name, value);
  }
  return fields;
}

template <class Write>
std::string written(std::size_t size, Write write_all) {
  std::string out;
  out.resize_and_overwrite(size, [&](char* bytes, std::size_t) {
    ByteWriter to(bytes);
    write_all(to);
    return static_cast<std::size_t>(to.at() - bytes);
  });
  return out;
}

}  // namespace

std::string encode_request(const StoredRequest& request) {
  const std::size_t size = 2 + framed_bytes(request.method) + framed_bytes(request.target) +
                           framed_bytes(request.host) + bytes_of(request.fields) +
                           request.sealed_for.bytes.size() + framed_bytes(request.sealed) +
                           framed_bytes(request.body);
  return written(size, [&](ByteWriter& to) {
    to.number(request_version);
    to.number(static_cast<std::uint8_t>(request.minor_version));
    to.framed(request.method);
    to.framed(request.target);
    to.framed(request.host);
    write(to, request.fields);
    to.bytes(request.sealed_for.bytes);
    to.framed(request.sealed);
    to.framed(request.body);
  });
}

std::expected<StoredRequest, std::string_view> decode_request(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.number<std::uint8_t>() != request_version) {
    return std::unexpected("it is of a version that this program does not know");
  }
  StoredRequest request;
  request.minor_version = in.number<std::uint8_t>();
  request.method = in.framed();
  request.target = in.framed();
  request.host = in.framed();
  request.fields = read_fields(in);
  in.bytes(request.sealed_for.bytes);
  request.sealed = in.framed();
  request.body = in.framed();
  if (in.is_cut_short()) return std::unexpected(request_cut_short);
  if (!in.is_at_end()) return std::unexpected(too_long);
  return request;
}

std::string encode_secrets(const RequestSecrets& secrets) {
  const std::size_t size = 1 + framed_bytes(secrets.key) + bytes_of(secrets.fields);
  return written(size, [&](ByteWriter& to) {
    to.number(secrets_version);
    to.framed(secrets.key);
    write(to, secrets.fields);
  });
}

std::expected<RequestSecrets, std::string_view> decode_secrets(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.number<std::uint8_t>() != secrets_version) {
    return std::unexpected("its secrets are of a version that this program does not know");
  }
  RequestSecrets secrets;
  secrets.key = in.framed();
  secrets.fields = read_fields(in);
  if (in.is_cut_short()) return std::unexpected(request_cut_short);
  if (!in.is_at_end()) return std::unexpected(too_long);
  return secrets;
}

std::string bound_to(const StoredRequest& request) {
  const auto& id = request.sealed_for.bytes;
  const std::string_view name(reinterpret_cast<const char*>(id.data()), id.size());
  FramedDigest rest;
  rest.add_number(static_cast<std::uint64_t>(request.minor_version));
  rest.add(request.method);
  rest.add(request.target);
  rest.add(request.host);
  rest.add_number(request.fields.size());
  for (const auto& [field, value] : request.fields) {
    rest.add(field);
    rest.add(value);
  }
  rest.add(request.body);
  const Digest digest = rest.finish();
  return std::string(name) + std::string(view_of(digest));
}

}  // namespace idem
