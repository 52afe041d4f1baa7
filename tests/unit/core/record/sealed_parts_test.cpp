#include "core/record/sealed_parts.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <vector>

/// Sealed answers, requests and texts of the evidence log: as another implementation makes them
/// (sealed_vectors.txt), and whatever an attacker does to them.
namespace idem {
namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  if (hex == "-") return bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}
template <std::size_t N>
std::array<std::uint8_t, N> array_of(const std::string& hex) {
  std::array<std::uint8_t, N> out{};
  from_hex(hex).copy(reinterpret_cast<char*>(out.data()), N);
  return out;
}

struct Vector {
  std::string kind;
  std::map<std::string, std::string> values;
  std::string scope;

  const std::string& at(const std::string& name) const { return values.at(name); }
  Secret secret(const std::string& name = "secret") const { return array_of<32>(at(name)); }
  SealedFor bound() const {
    return {scope, RecordId{array_of<16>(at("id"))}, std::stoull(at("fence"))};
  }
};

std::vector<Vector> vectors() {
  std::ifstream file(IDEM_SOURCE_DIR "/tests/unit/core/record/sealed_vectors.txt");
  std::vector<Vector> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const auto space = line.find(' ');
    const std::string name = line.substr(0, space);
    const bool begins =
        name == "answer" || name == "request" || name == "evidence" || name == "line";
    if (begins) all.push_back({name, {}, {}});
    all.back().values[name] = line.substr(space + 1);
    if (name == "scope") all.back().scope = from_hex(line.substr(space + 1));
  }
  return all;
}

StoredResponse sealed_of(const Vector& vector, const std::string& field = "field") {
  return {std::stoi(vector.at("status")),
          {{"idem-sealed", vector.at(field)}},
          from_hex(vector.at("sealed_body")),
          vector.at("stored") == "1"};
}
StoredResponse plain_of(const Vector& vector) {
  StoredResponse plain{
      std::stoi(vector.at("status")), {}, from_hex(vector.at("body")), vector.at("stored") == "1"};
  if (vector.at("fields") == "-") return plain;
  std::vector<std::string> parts{""};
  for (const char c : vector.at("fields")) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  for (std::size_t i = 0; i < parts.size(); i += 2) {
    plain.headers.push_back({from_hex(parts[i]), from_hex(parts[i + 1])});
  }
  return plain;
}

TEST(SealedParts, S14_another_implementations_answers_open_and_rewrap_to_the_same_bytes) {
  int seen = 0;
  for (const Vector& vector : vectors()) {
    if (vector.kind != "answer") continue;
    ++seen;
    const NamedKey key = named_key(vector.secret());
    const NamedKey newer = named_key(vector.secret("newer"));
    EXPECT_EQ(to_hex(key.ref.name), vector.at("key_name"));
    StoredResponse answer = sealed_of(vector);
    ASSERT_TRUE(is_sealed(answer));
    EXPECT_EQ(key_of(answer), key.ref);
    StoredResponse moved_key = answer;
    ASSERT_TRUE(rewrap_answer(key, newer, moved_key));
    EXPECT_EQ(moved_key, sealed_of(vector, "rewrapped"));
    EXPECT_FALSE(rewrap_answer(newer, key, answer)) << "not the key that wrapped it";
    ASSERT_TRUE(open_answer(key, vector.bound(), answer));
    EXPECT_EQ(answer, plain_of(vector));
    ASSERT_TRUE(open_answer(newer, vector.bound(), moved_key));
    EXPECT_EQ(moved_key, plain_of(vector));

    CipherKey random;
    random.bytes = vector.secret("newer");
    const NamedKey of_scope = key_of_scope(random);
    StoredResponse scoped = sealed_of(vector);
    ASSERT_TRUE(rewrap_answer(key, of_scope, scoped));
    EXPECT_EQ(scoped, sealed_of(vector, "scoped"));
    EXPECT_EQ(key_of(scoped), of_scope.ref);
    StoredResponse other_kind = scoped;
    EXPECT_FALSE(open_answer(newer, vector.bound(), other_kind)) << "of a secret, not of a scope";
    ASSERT_TRUE(open_answer(of_scope, vector.bound(), scoped));
    EXPECT_EQ(scoped, plain_of(vector));
  }
  EXPECT_EQ(seen, 4);
}

TEST(SealedParts, S14_another_implementations_requests_and_evidence_open) {
  int seen = 0;
  for (const Vector& vector : vectors()) {
    if (vector.kind == "answer" || vector.kind == "line") continue;
    ++seen;
    const NamedKey key = named_key(vector.secret());
    std::string text = from_hex(vector.at("sealed"));
    if (vector.kind == "request") {
      EXPECT_EQ(key_of_request(text), key.ref);
      std::string anew = text;
      ASSERT_TRUE(rewrap_request(key, named_key(vector.secret("newer")), anew));
      EXPECT_EQ(anew, from_hex(vector.at("rewrapped")));
      ASSERT_TRUE(open_request(key, vector.bound(), text));
    } else {
      EXPECT_EQ(key_of_evidence(text), key.ref);
      ASSERT_TRUE(open_evidence(key, vector.bound(), text));
    }
    EXPECT_EQ(text, from_hex(vector.at("plain")));
  }
  EXPECT_EQ(seen, 3);
}

TEST(SealedParts, S14_another_implementations_lines_open) {
  int seen = 0;
  for (const Vector& vector : vectors()) {
    if (vector.kind != "line") continue;
    ++seen;
    const NamedKey key = named_key(vector.secret());
    std::string line = from_hex(vector.at("sealed"));
    EXPECT_EQ(key_of_line(line), key.ref);
    ASSERT_TRUE(open_line(key, {vector.at("journal"), std::stoull(vector.at("number"))}, line));
    EXPECT_EQ(line, from_hex(vector.at("plain")));
  }
  EXPECT_EQ(seen, 2);
}

TEST(SealedParts, S14_a_line_opens_at_its_place_alone) {
  const NamedKey with = named_key(Secret{1, 2, 3});
  const LinePlace place{"approval/1", 2};
  std::string whole = R"({"line":"approve","who":"ada"})";
  const std::string clear = whole;
  seal_line(with, place, whole);
  EXPECT_EQ(whole.size(), clear.size() + sealed_line_extra_bytes);
  EXPECT_EQ(whole.find("ada"), std::string::npos);
  const auto opens = [](const NamedKey& key, const LinePlace& at, std::string line) {
    return open_line(key, at, line);
  };
  EXPECT_TRUE(opens(with, place, whole));
  EXPECT_FALSE(opens(with, {"approval/2", 2}, whole)) << "moved to another journal";
  EXPECT_FALSE(opens(with, {"job/1", 2}, whole));
  EXPECT_FALSE(opens(with, {"approval/1", 1}, whole)) << "moved to another place";
  EXPECT_FALSE(opens(named_key(Secret{4}), place, whole));
  EXPECT_FALSE(opens(with, place, clear));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(opens(with, place, changed)) << "byte " << at;
    EXPECT_FALSE(opens(with, place, whole.substr(0, at))) << "cut at " << at;
  }
}

const std::string scope = "tenant-1";
const NamedKey key = named_key(Secret{1, 2, 3});
const SealedFor bound{scope, RecordId{{1, 1, 2, 3}}, 7};
StoredResponse plain() { return {201, {{"Location", "/payments/1"}}, "it ran", true}; }

StoredResponse sealed() {
  StoredResponse answer = plain();
  seal_answer(key, bound, answer);
  return answer;
}

TEST(SealedParts, S14_a_store_sees_status_length_and_one_field) {
  const StoredResponse answer = sealed();
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body.size(), plain().body.size());
  ASSERT_EQ(answer.headers.size(), 1U);
  EXPECT_EQ(answer.headers[0].name, sealed_field);
  EXPECT_EQ(answer.headers[0].value.find("payments"), std::string::npos);
  EXPECT_NE(answer.body, plain().body);
  EXPECT_NE(answer, sealed()) << "each has a key of its own";
  StoredResponse opened = answer;
  ASSERT_TRUE(open_answer(key, bound, opened));
  EXPECT_EQ(opened, plain());
}

TEST(SealedParts, S14_a_head_grows_by_a_third_and_a_fixed_part) {
  for (const std::size_t size : {0U, 1U, 100U, 16'000U}) {
    StoredResponse answer{200, {{"X-Large", std::string(size, 'a')}}, {}, true};
    const std::size_t before = size;
    seal_answer(key, bound, answer);
    EXPECT_LE(answer.headers[0].name.size() + answer.headers[0].value.size(),
              before + before / 3 + sealed_head_extra_bytes);
  }
}

TEST(SealedParts, S14_nothing_opens_elsewhere_or_in_another_state) {
  const auto expect_refused = [](const SealedFor& other, StoredResponse answer) {
    EXPECT_FALSE(open_answer(key, other, answer));
  };
  expect_refused({"tenant-2", bound.id, bound.fence}, sealed());
  expect_refused({scope, RecordId{{9}}, bound.fence}, sealed());
  expect_refused({scope, bound.id, 8}, sealed());
  StoredResponse answer = sealed();
  answer.status = 200;
  expect_refused(bound, answer);
  answer = sealed();
  answer.body_stored = false;
  expect_refused(bound, answer);
  answer = sealed();
  answer.headers.push_back({"Location", "/payments/2"});
  EXPECT_TRUE(is_sealed(answer)) << "it does not pass as an answer in clear";
  expect_refused(bound, answer);
  answer = sealed();
  answer.body = sealed().body;
  expect_refused(bound, answer);
  EXPECT_FALSE(open_answer(named_key(Secret{4}), bound, answer = sealed()));
}

TEST(SealedParts, S14_no_changed_and_no_cut_byte_opens) {
  const StoredResponse whole = sealed();
  const std::string& value = whole.headers[0].value;
  for (std::size_t at = 0; at < value.size(); ++at) {
    StoredResponse changed = whole;
    char& byte = changed.headers[0].value[at];
    byte = byte == 'A' ? 'B' : 'A';
    EXPECT_FALSE(open_answer(key, bound, changed)) << at;
    changed = whole;
    changed.headers[0].value.resize(at);
    EXPECT_FALSE(open_answer(key, bound, changed)) << at;
  }
  for (std::size_t at = 0; at < whole.body.size(); ++at) {
    StoredResponse changed = whole;
    changed.body[at] = static_cast<char>(changed.body[at] ^ 1);
    EXPECT_FALSE(open_answer(key, bound, changed)) << at;
    changed = whole;
    changed.body.resize(at);
    EXPECT_FALSE(open_answer(key, bound, changed)) << at;
  }
}

TEST(SealedParts, S14_a_request_opens_in_its_record_alone) {
  std::string request = "POST / please";
  seal_request(key, scope, std::span(&bound.id, 1), request);
  EXPECT_TRUE(is_sealed_request(request));
  EXPECT_EQ(request.find("please"), std::string::npos);
  for (std::size_t at = 0; at < request.size(); ++at) {
    std::string changed = request;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(open_request(key, bound, changed)) << at;
    changed = request.substr(0, at);
    EXPECT_FALSE(open_request(key, bound, changed)) << at;
  }
  std::string moved = request;
  EXPECT_FALSE(open_request(key, {scope, RecordId{{9}}, 0}, moved));
  EXPECT_FALSE(open_request(key, {"tenant-2", bound.id, 0}, moved));
  EXPECT_TRUE(open_request(key, {scope, bound.id, 0}, request)) << "of whichever attempt";
}

TEST(SealedParts, S14_a_request_opens_under_each_name_of_its_key) {
  const std::vector<RecordId> ids{bound.id, RecordId{{9}}, RecordId{{8}}};
  for (const RecordId& id : ids) {
    std::string request = "POST / please";
    seal_request(key, scope, ids, request);
    ASSERT_TRUE(open_request(key, {scope, id, 0}, request));
    EXPECT_EQ(request, "POST / please");
  }
  std::string request = "POST / please";
  seal_request(key, scope, ids, request);
  std::string longer = request;
  longer.insert(13, std::string(16, '\7'));
  longer[11] = 4;
  EXPECT_FALSE(open_request(
      key, {scope, RecordId{{7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}}, 0}, longer));
  EXPECT_FALSE(open_request(key, {scope, RecordId{{7}}, 0}, request));
}

}  // namespace
}  // namespace idem
