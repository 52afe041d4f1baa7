#include "core/record/sealed_parts.hpp"

#include "core/bytes/ascii.hpp"
#include "core/bytes/base64.hpp"
#include "core/bytes/digests.hpp"
#include "core/record/stored_response_codec.hpp"

#include <idem/assert.hpp>

#include <algorithm>

namespace idem {
namespace {

/// Layout, before the parts: version, kind and name of the wrapping key, the wrapped key. An answer
/// has the body's tag behind it, then its head, encrypted, with its tag; a request has the request,
/// encrypted, with its tag.
constexpr char sealed_version = 1;
constexpr std::size_t name_offset = 2;
constexpr std::size_t wrapped_at = name_offset + KeyName{}.size();
constexpr std::size_t envelope_bytes = wrapped_at + wrapped_key_bytes;
/// Before a request's bytes; encode_request() begins with a version below these.
constexpr std::string_view request_mark = "idem-sealed";
/// Before a journal's line; those in clear are no such text.
constexpr std::string_view line_mark = "idem-sealed";
/// Behind it the number of ids (16 bits), and the ids of the records that it may lie in.
constexpr std::size_t names_at = request_mark.size() + 2;
constexpr std::size_t id_bytes = RecordId{}.bytes.size();
/// Before the base64 of a text of the evidence log.
constexpr std::string_view evidence_mark = "idem-sealed:";

constexpr std::string_view not_sealed = "it is not sealed";
constexpr std::string_view part_cut_short = "its sealed part is cut short";
constexpr std::string_view unknown_version =
    "it was sealed in a form that this program does not know";

/// Also the nonces.
enum class Part : std::uint8_t { head = 1, body = 2, request = 3, evidence = 4, line = 5 };

std::string_view name_of(Part part) noexcept {
  switch (part) {
    case Part::head:
      return "head";
    case Part::body:
      return "body";
    case Part::request:
      return "request";
    case Part::evidence:
      return "evidence";
    case Part::line:
      return "line";
  }
  return "";
}

std::string_view view(const auto& bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// `names`: the id of the record, or several, one behind the other.
std::string bound_text(Part part, std::string_view scope, std::string_view names, Fence fence,
                       const StoredResponse* response) {
  Frames frames(160 + scope.size() + names.size());
  frames.add("idem sealed 1");
  frames.add(name_of(part));
  frames.add(scope);
  frames.add(names);
  frames.add_number(fence);
  if (part != Part::evidence) {
    frames.add(name_of(response != nullptr ? State::completed : State::pending));
  }
  if (response != nullptr) {
    frames.add_number(static_cast<std::uint64_t>(response->status));
    frames.add_number(response->body_stored ? 1 : 0);
  }
  return frames.bytes();
}

std::string bound_text(Part part, const SealedFor& bound, const StoredResponse* response) {
  return bound_text(part, bound.scope, view(bound.id.bytes), bound.fence, response);
}

std::string bound_line(const LinePlace& place) {
  Frames frames(64 + place.journal.size());
  frames.add("idem sealed 1");
  frames.add(name_of(Part::line));
  frames.add(place.journal);
  frames.add_number(place.number);
  return frames.bytes();
}

std::string envelope_of(const NamedKey& with, const CipherKey& key) {
  std::string out;
  out += sealed_version;
  out += static_cast<char>(with.ref.kind);
  out += view(with.ref.name);
  out += wrap_key(with.key, key);
  return out;
}

std::expected<KeyRef, std::string_view> read_ref(std::string_view sealed) {
  if (sealed.size() < envelope_bytes + cipher_tag_bytes) return std::unexpected(part_cut_short);
  if (sealed[0] != sealed_version) return std::unexpected(unknown_version);
  KeyRef ref;
  ref.kind = static_cast<KeyKind>(sealed[1]);
  if (ref.kind != KeyKind::secret && ref.kind != KeyKind::scope) {
    return std::unexpected(unknown_version);
  }
  sealed.substr(name_offset).copy(reinterpret_cast<char*>(ref.name.data()), ref.name.size());
  return ref;
}

std::optional<CipherKey> own_key(const NamedKey& with, std::string_view sealed) {
  if (read_ref(sealed) != with.ref) return std::nullopt;
  return unwrap_key(with.key, sealed.substr(wrapped_at, wrapped_key_bytes));
}

/// With its key wrapped anew.
std::optional<std::string> rewrapped(const NamedKey& from, const NamedKey& to,
                                     std::string_view sealed) {
  const auto key = own_key(from, sealed);
  if (!key) return std::nullopt;
  return envelope_of(to, *key) + std::string(sealed.substr(envelope_bytes));
}

CipherTag tag_at(std::string_view bytes, std::size_t at) {
  CipherTag tag;
  bytes.substr(at).copy(reinterpret_cast<char*>(tag.data()), tag.size());
  return tag;
}

/// The bytes behind the field; none if it is not alone, or no base64.
std::optional<std::string> field_bytes(const StoredResponse& sealed) {
  if (sealed.headers.size() != 1 || !equal_names(sealed.headers.front().name, sealed_field)) {
    return std::nullopt;
  }
  return from_base64(sealed.headers.front().value);
}

/// A text on its own: envelope, the text encrypted, its tag.
std::string sealed_bytes(const NamedKey& with, Part part, std::string_view bound,
                         std::string text) {
  const CipherKey key = random_cipher_key();
  const CipherTag tag = encrypt_in_place(key, static_cast<std::uint8_t>(part), bound, text);
  std::string out;
  out.reserve(envelope_bytes + text.size() + cipher_tag_bytes);
  out += envelope_of(with, key);
  out += text;
  out += view(tag);
  return out;
}

std::optional<std::string> opened_bytes(const NamedKey& with, Part part, std::string_view bound,
                                        std::string_view bytes) {
  const auto key = own_key(with, bytes);
  if (!key) return std::nullopt;
  std::string text(bytes.substr(envelope_bytes, bytes.size() - envelope_bytes - cipher_tag_bytes));
  const CipherTag tag = tag_at(bytes, bytes.size() - cipher_tag_bytes);
  if (!decrypt_in_place(*key, static_cast<std::uint8_t>(part), bound, tag, text)) {
    return std::nullopt;
  }
  return text;
}

/// Where the envelope of a sealed request begins; none: it is cut short.
std::optional<std::size_t> envelope_place(std::string_view sealed) noexcept {
  if (sealed.size() < names_at) return std::nullopt;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(sealed[at]); };
  const std::size_t count = byte(names_at - 2) + 256U * byte(names_at - 1);
  const std::size_t place = names_at + count * id_bytes;
  return place <= sealed.size() ? std::optional(place) : std::nullopt;
}

std::optional<std::string> evidence_bytes(std::string_view sealed) {
  if (!is_sealed_evidence(sealed)) return std::nullopt;
  return from_base64(sealed.substr(evidence_mark.size()));
}

void set_field(StoredResponse& response, std::string_view bytes) {
  response.headers.clear();
  response.headers.push_back({std::string(sealed_field), to_base64(bytes)});
}

}  // namespace

NamedKey named_key(const Secret& secret) {
  return {{KeyKind::secret, wrapping_key_name(secret)}, wrapping_key(secret)};
}

NamedKey key_of_scope(const CipherKey& random) {
  return {{KeyKind::scope, wrapping_key_name(random.bytes)}, wrapping_key(random.bytes)};
}

void seal_answer(const NamedKey& with, const SealedFor& bound, StoredResponse& response) {
  const CipherKey key = random_cipher_key();
  const auto nonce = [](Part part) { return static_cast<std::uint8_t>(part); };
  std::string head;
  encode_answer(response, head);
  const CipherTag body_tag = encrypt_in_place(
      key, nonce(Part::body), bound_text(Part::body, bound, &response), response.body);
  const CipherTag head_tag =
      encrypt_in_place(key, nonce(Part::head), bound_text(Part::head, bound, &response), head);
  std::string bytes = envelope_of(with, key);
  bytes += view(body_tag);
  bytes += head;
  bytes += view(head_tag);
  set_field(response, bytes);
}

bool is_sealed(const StoredResponse& response) noexcept {
  return std::ranges::any_of(
      response.headers, [](const Field& field) { return equal_names(field.name, sealed_field); });
}

std::expected<KeyRef, std::string_view> key_of(const StoredResponse& sealed) {
  const auto bytes = field_bytes(sealed);
  if (!bytes) return std::unexpected("its sealed field was changed");
  if (bytes->size() < envelope_bytes + 2 * cipher_tag_bytes) return std::unexpected(part_cut_short);
  return read_ref(*bytes);
}

bool open_answer(const NamedKey& with, const SealedFor& bound, StoredResponse& sealed) {
  const auto bytes = field_bytes(sealed);
  if (!bytes || bytes->size() < envelope_bytes + 2 * cipher_tag_bytes) return false;
  const auto key = own_key(with, *bytes);
  if (!key) return false;
  const std::size_t head_at = envelope_bytes + cipher_tag_bytes;
  std::string head = bytes->substr(head_at, bytes->size() - head_at - cipher_tag_bytes);
  if (!decrypt_in_place(*key, static_cast<std::uint8_t>(Part::head),
                        bound_text(Part::head, bound, &sealed),
                        tag_at(*bytes, bytes->size() - cipher_tag_bytes), head)) {
    return false;
  }
  auto opened = decode_answer(head);
  if (!opened || !decrypt_in_place(*key, static_cast<std::uint8_t>(Part::body),
                                   bound_text(Part::body, bound, &sealed),
                                   tag_at(*bytes, envelope_bytes), sealed.body)) {
    return false;
  }
  sealed.headers = std::move(opened->headers);
  return true;
}

bool rewrap_answer(const NamedKey& from, const NamedKey& to, StoredResponse& sealed) {
  const auto bytes = field_bytes(sealed);
  if (!bytes) return false;
  const auto anew = rewrapped(from, to, *bytes);
  if (!anew) return false;
  set_field(sealed, *anew);
  return true;
}

void seal_request(const NamedKey& with, std::string_view scope, std::span<const RecordId> ids,
                  std::string& request) {
  IDEM_ASSERT(!ids.empty() && ids.size() <= UINT16_MAX);
  std::string names;
  for (const RecordId& id : ids) names += view(id.bytes);
  std::string out(request_mark);
  out += static_cast<char>(ids.size() & 0xFF);
  out += static_cast<char>(ids.size() >> 8);
  out += names;
  out += sealed_bytes(with, Part::request, bound_text(Part::request, scope, names, 0, nullptr),
                      std::move(request));
  request = std::move(out);
}

bool is_sealed_request(std::string_view request) noexcept {
  return request.starts_with(request_mark);
}

std::expected<KeyRef, std::string_view> key_of_request(std::string_view sealed) {
  if (!is_sealed_request(sealed)) return std::unexpected(not_sealed);
  const auto envelope_at = envelope_place(sealed);
  if (!envelope_at) return std::unexpected(part_cut_short);
  return read_ref(sealed.substr(*envelope_at));
}

bool open_request(const NamedKey& with, const SealedFor& bound, std::string& sealed) {
  if (!is_sealed_request(sealed)) return false;
  const auto envelope_at = envelope_place(sealed);
  if (!envelope_at) return false;
  const std::string_view bytes = sealed;
  const std::string_view names = bytes.substr(names_at, *envelope_at - names_at);
  bool is_named = false;
  for (std::size_t at = 0; at < names.size(); at += id_bytes) {
    is_named |= names.substr(at, id_bytes) == view(bound.id.bytes);
  }
  if (!is_named) return false;
  auto text =
      opened_bytes(with, Part::request, bound_text(Part::request, bound.scope, names, 0, nullptr),
                   bytes.substr(*envelope_at));
  if (text) sealed = std::move(*text);
  return text.has_value();
}

bool rewrap_request(const NamedKey& from, const NamedKey& to, std::string& sealed) {
  if (!key_of_request(sealed)) return false;
  const std::size_t envelope_at = *envelope_place(sealed);
  const auto anew = rewrapped(from, to, std::string_view(sealed).substr(envelope_at));
  if (!anew) return false;
  sealed = sealed.substr(0, envelope_at) + *anew;
  return true;
}

void seal_evidence(const NamedKey& with, const SealedFor& bound, std::string& text) {
  text = std::string(evidence_mark) +
         to_base64(sealed_bytes(with, Part::evidence, bound_text(Part::evidence, bound, nullptr),
                                std::move(text)));
}

bool is_sealed_evidence(std::string_view text) noexcept { return text.starts_with(evidence_mark); }

std::expected<KeyRef, std::string_view> key_of_evidence(std::string_view sealed) {
  const auto bytes = evidence_bytes(sealed);
  if (!bytes) return std::unexpected(not_sealed);
  return read_ref(*bytes);
}

bool open_evidence(const NamedKey& with, const SealedFor& bound, std::string& sealed) {
  const auto bytes = evidence_bytes(sealed);
  if (!bytes) return false;
  auto text =
      opened_bytes(with, Part::evidence, bound_text(Part::evidence, bound, nullptr), *bytes);
  if (text) sealed = std::move(*text);
  return text.has_value();
}

void seal_line(const NamedKey& with, const LinePlace& place, std::string& line) {
  line =
      std::string(line_mark) + sealed_bytes(with, Part::line, bound_line(place), std::move(line));
}

bool is_sealed_line(std::string_view line) noexcept { return line.starts_with(line_mark); }

std::expected<KeyRef, std::string_view> key_of_line(std::string_view sealed) {
  if (!is_sealed_line(sealed)) return std::unexpected(not_sealed);
  return read_ref(sealed.substr(line_mark.size()));
}

bool open_line(const NamedKey& with, const LinePlace& place, std::string& sealed) {
  if (!is_sealed_line(sealed)) return false;
  auto text = opened_bytes(with, Part::line, bound_line(place),
                           std::string_view(sealed).substr(line_mark.size()));
  if (text) sealed = std::move(*text);
  return text.has_value();
}

}  // namespace idem
