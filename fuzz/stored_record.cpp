// Records and answers as they lie in a store. A decoded value encodes to the same bytes; a
// record with a byte less or more is refused; any answer that can be written is read back.
#include "core/bytes/base64.hpp"
#include "core/bytes/checksum.hpp"
#include "core/record/sealed_parts.hpp"
#include "core/record/stored_record_codec.hpp"
#include "core/record/stored_response_codec.hpp"
#include "fuzz/check.hpp"
#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"

#include <string>

namespace idem::fuzz {
namespace {

const NamedKey& key() {
  static const NamedKey fixed = named_key(Secret{1});
  return fixed;
}

/// The input is the bytes before the checksum, which no invented input would match.
std::string sealed(std::string_view input) {
  std::string bytes(input);
  append_checksum(RecordId{}, bytes);
  return bytes;
}

void check_record(std::string_view input) {
  const ExactBytes bytes(input);
  check(!decode_record(RecordId{}, bytes.view()) || input.size() > checksum_bytes,
        "a record has a checksum");
  const std::string whole = sealed(input);
  const auto record = decode_record(RecordId{}, ExactBytes(whole).view());
  if (!record) {
    check(!record.error().empty(), "a refusal has a reason");
    return;
  }
  std::string encoded = "what was there before";
  encode_record(*record, encoded);
  check(encoded == whole, "a record is encoded to the bytes it was decoded from");
  check(!record->response, "a record has no answer yet");
  const std::string cut = sealed(input.substr(0, Pieces(input).position(input.size() - 1)));
  const auto shorter = decode_record(RecordId{}, ExactBytes(cut).view());
  check(!shorter || shorter->provider.empty(), "a record that is cut short is refused");
  check(!decode_record(RecordId{}, whole + '\0'), "a record with a byte behind it is refused");
}

void check_answer(std::string_view input) {
  const ExactBytes bytes(input);
  const auto answer = decode_answer(bytes.view());
  const auto status = decode_status(bytes.view());
  if (!answer) {
    check(!answer.error().empty(), "a refusal has a reason");
    return;
  }
  check(status && status->status == answer->status && status->body_stored == answer->body_stored &&
            status->headers.empty(),
        "a listing sees the same answer");
  check(answer->status >= 100 && answer->status <= 999, "a status has three digits");
  std::string encoded;
  encode_answer(*answer, encoded);
  check(encoded == input, "an answer is encoded to the bytes it was decoded from");
}

/// An answer made of the input's pieces.
void check_any_answer(std::string_view input) {
  Pieces pieces(input);
  StoredResponse answer;
  answer.status = 100 + static_cast<int>(pieces.position(899));
  answer.body_stored = pieces.position(1) == 1;
  for (std::size_t at = 0; at < input.size();) {
    Field& field = answer.headers.emplace_back();
    for (std::string* part : {&field.name, &field.value}) {
      const auto size = pieces.position(input.size() - at);
      *part = input.substr(at, size);
      at += size;
    }
  }
  std::string encoded;
  encode_answer(answer, encoded);
  const auto decoded = decode_answer(ExactBytes(encoded).view());
  check(decoded && *decoded == answer, "an answer that was written is read back");
  check_answer(encoded);
  check_answer(std::string_view(encoded).substr(0, pieces.position(encoded.size())));

  const SealedFor bound{"scope", RecordId{}, 1};
  StoredResponse hidden = answer;
  seal_answer(key(), bound, hidden);
  check(is_sealed(hidden) && open_answer(key(), bound, hidden) && hidden == answer,
        "a sealed answer opens");
}

/// Bytes in the places of encrypted ones: they are read without a fault, and none of them opens.
void check_sealed(std::string_view input) {
  const SealedFor bound{"scope", RecordId{}, 1};
  for (const bool is_text : {false, true}) {
    StoredResponse answer{200, {{"idem-sealed", {}}}, std::string(input), true};
    answer.headers[0].value = is_text ? std::string(input) : to_base64(input);
    (void)key_of(answer);
    check(!open_answer(key(), bound, answer), "no other bytes are a sealed answer");
    std::string text = "idem-sealed:" + (is_text ? std::string(input) : to_base64(input));
    (void)key_of_evidence(text);
    check(!open_evidence(key(), bound, text), "no other text is a sealed line");
  }
  std::string request = "idem-sealed" + std::string(input);
  (void)key_of_request(request);
  check(!open_request(key(), bound, request), "no other bytes are a sealed request");
}

}  // namespace

void stored_record(std::string_view input) {
  check_record(input);
  check_answer(input);
  // Positions may be 0 again and again; what is left is short, so that the end comes soon.
  check_any_answer(input.substr(0, 64));
  check_sealed(input);
}

}  // namespace idem::fuzz
