#include <idem/fingerprint.hpp>

#include "core/bytes/ascii.hpp"
#include "core/bytes/digests.hpp"
#include "core/fingerprint/body_form.hpp"
#include "core/fingerprint/media_type.hpp"
#include "core/json/selection.hpp"

#include <idem/assert.hpp>
#include <idem/limits.hpp>

#include <openssl/rand.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <climits>

namespace idem::inline v0_1 {
namespace {

using Names = std::vector<std::string>;

Names sorted(Names names) {
  std::ranges::sort(names);
  const auto twins = std::ranges::unique(names);
  names.erase(twins.begin(), twins.end());
  return names;
}

FingerprintRule sorted(const FingerprintRule& rule) {
  Names headers = rule.headers;
  for (std::string& name : headers) name = lower_case(name);
  return {sorted(rule.include), sorted(rule.exclude), sorted(std::move(headers))};
}

void add_names(Frames& frames, const Names& names) {
  frames.add_number(names.size());
  for (const std::string& name : names) frames.add(name);
}

using HeaderLine = std::pair<std::string, std::string_view>;

std::vector<HeaderLine> lines_of(std::span<const std::string_view> chosen) {
  IDEM_ASSERT(chosen.size() % 2 == 0);
  std::vector<HeaderLine> lines;
  for (std::size_t i = 0; i < chosen.size(); i += 2) {
    lines.emplace_back(lower_case(chosen[i]), chosen[i + 1]);
  }
  return lines;
}

// Lines of one name keep their order; the order of different names does not count (RFC 9110 §5.3).
void add_chosen_headers(Frames& frames, std::uint32_t version,
                        std::span<const std::string_view> chosen) {
  auto lines = lines_of(chosen);
  if (version > 1) std::ranges::stable_sort(lines, {}, &HeaderLine::first);
  frames.add_number(chosen.size());
  for (const auto& [name, value] : lines) {
    frames.add(name);
    frames.add(value);
  }
}

void add_rule(Frames& frames, const FingerprintRule& rule) {
  add_names(frames, rule.include);
  add_names(frames, rule.exclude);
  add_names(frames, rule.headers);
}

RuleName name_of(const FingerprintRule& rule) {
  Frames frames;
  frames.add("idem fingerprint rule");
  add_rule(frames, rule);
  const Digest full = sha256(frames.bytes());
  RuleName name;
  std::copy_n(full.begin(), name.size(), name.begin());
  return name;
}

/// The codings in their order, without `identity`.
std::string codings_of(std::span<const std::string_view> lines) {
  std::string codings;
  const auto add = [&codings](std::string_view coding) {
    const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!coding.empty() && is_blank(coding.front())) coding.remove_prefix(1);
    while (!coding.empty() && is_blank(coding.back())) coding.remove_suffix(1);
    const std::string name = lower_case(coding);
    if (name.empty() || name == "identity") return;
    codings += codings.empty() ? "" : ",";
    codings += name;
  };
  for (std::string_view line : lines) {
    for (auto comma = line.find(','); comma != line.npos; comma = line.find(',')) {
      add(line.substr(0, comma));
      line.remove_prefix(comma + 1);
    }
    add(line);
  }
  return codings;
}

// An encoded body cannot be read, so its raw bytes count.
BodyForm form_by(const FingerprintRule& rule, const FingerprintParts& parts, std::string_view media,
                 std::string_view codings) {
  if (!codings.empty()) return raw_form(parts.body);
  return body_form(media, parts.content_type, parts.body, rule);
}

// From version 2 on the frame holds the rule; all else is in the same order in every version.
std::string frame(std::uint32_t version, const FingerprintParts& parts, std::string_view media,
                  std::span<const std::string_view> chosen_headers, const FingerprintRule& rule,
                  const BodyForm& body, std::string_view codings = {}) {
  Frames frames(256 + parts.target.size());
  frames.add_number(version);
  frames.add(parts.method);
  frames.add(parts.target);
  frames.add(media);
  add_chosen_headers(frames, version, chosen_headers);
  if (version > 1) add_rule(frames, rule);
  frames.add(body.tag);
  frames.add(view_of(body.digest));
  if (!codings.empty()) frames.add(codings);
  return frames.bytes();
}

bool is_field_name(std::string_view name) {
  static constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           others.find(c) != others.npos;
  };
  return !name.empty() && std::ranges::all_of(name, fits);
}

}  // namespace

std::expected<void, std::string> check_rule(const FingerprintRule& rule) {
  for (const Names* names : {&rule.include, &rule.exclude, &rule.headers}) {
    if (names->size() <= limits::fingerprint_rule_entries_max) continue;
    return std::unexpected("more than " + std::to_string(limits::fingerprint_rule_entries_max) +
                           " entries in one list");
  }
  for (const std::string& name : rule.headers) {
    if (!is_field_name(name)) return std::unexpected('"' + name + "\" is no field name");
  }
  const auto selection = JsonSelection::parse(rule.include, rule.exclude);
  if (!selection) return std::unexpected(selection.error());
  return {};
}

RequestDigest::RequestDigest(const FingerprintParts& parts) {
  const std::string media = media_type(parts.content_type);
  const FingerprintRule none;
  const FingerprintRule rule = parts.rule ? sorted(*parts.rule) : none;
  auto chosen = parts.chosen_headers;
  const std::string codings = codings_of(parts.content_encoding);
  if (!codings.empty()) {
    const BodyForm encoded = form_by(rule, parts, media, codings);
    const auto add = [&](const FingerprintRule& by, std::span<const std::string_view> headers) {
      framed_.push_back({4, frame(4, parts, media, headers, by, encoded, codings), name_of(by)});
    };
    add(rule, chosen);
    if (!rule.empty()) add(none, {});
    return;
  }
  if (!rule.empty()) {
    const BodyForm selected = form_by(rule, parts, media, codings);
    framed_.push_back({3, frame(3, parts, media, chosen, rule, selected), name_of(rule)});
    chosen = {};
  }
  // The record may be older than the rule; its fingerprint was then made without one.
  const BodyForm whole = form_by(none, parts, media, codings);
  if (!whole.as_in_version_1) framed_.push_back({2, frame(2, parts, media, chosen, none, whole)});
  const BodyForm first = whole.as_in_version_1 ? whole : raw_form(parts.body);
  framed_.push_back({1, frame(1, parts, media, chosen, none, first)});
}

std::vector<Fingerprint> RequestDigest::under(const Secret& secret) const {
  thread_local KeyedDigest digest("idem fingerprint");
  std::vector<Fingerprint> fingerprints;
  fingerprints.reserve(framed_.size());
  for (const Framed& framed : framed_) {
    Fingerprint made{framed.version, digest.of(secret, framed.bytes)};
    // The rest of the digest is at least as long as a record's handle.
    if (framed.rule) std::ranges::copy(*framed.rule, made.digest.begin());
    fingerprints.push_back(made);
  }
  return fingerprints;
}

Fingerprint fingerprint(const Secret& secret, const FingerprintParts& parts) {
  return RequestDigest(parts).under(secret).front();
}

RecordId record_id(const Secret& secret, std::string_view scope, std::string_view operation,
                   std::string_view key) {
  Frames frames(24 + scope.size() + operation.size() + key.size());
  frames.add(scope);
  frames.add(operation);
  frames.add(key);

  thread_local KeyedDigest digest("idem record id");
  const Digest full = digest.of(secret, frames.bytes());
  RecordId id;
  std::copy_n(full.begin(), id.bytes.size(), id.bytes.begin());
  return id;
}

Secret secret_from(std::string_view material) {
  while (material.ends_with('\n') || material.ends_with('\r')) material.remove_suffix(1);
  Frames frames(64);
  frames.add("idem secret file");
  frames.add(material);
  return sha256(frames.bytes());
}

std::string secret_id(const Secret& secret) {
  thread_local KeyedDigest digest("idem secret id");
  return to_hex(digest.of(secret, "")).substr(0, 16);
}

std::string credential_digest(const Secret& secret, std::string_view credential) {
  thread_local KeyedDigest digest("idem credential");
  return to_hex(digest.of(secret, credential));
}

void random_bytes(std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const auto part = out.first(std::min<std::size_t>(out.size(), INT_MAX));
    IDEM_ASSERT(RAND_bytes(part.data(), static_cast<int>(part.size())) == 1);
    out = out.subspan(part.size());
  }
}

namespace {

// Counts this process's forks: a child must not use the bytes that its parent drew, because two
// attempts with one token would each regard the other's reservation as their own.
std::atomic<unsigned> forks{0};

void notice_forks() {
  static const int code =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  IDEM_ASSERT(code == 0);
}

// A draw costs far more than its bytes, so one draw serves many tokens.
struct TokenBlock {
  std::array<std::uint8_t, 64 * sizeof(Token)> bytes;
  std::size_t used = sizeof bytes;
  unsigned drawn_after = 0;
};

}  // namespace

Token random_token() {
  notice_forks();
  thread_local TokenBlock block;
  const unsigned now = forks.load(std::memory_order_relaxed);
  if (block.used == block.bytes.size() || block.drawn_after != now) {
    random_bytes(block.bytes);
    block.used = 0;
    block.drawn_after = now;
  }
  Token token;
  std::copy_n(block.bytes.begin() + block.used, token.bytes.size(), token.bytes.begin());
  block.used += token.bytes.size();
  return token;
}

}  // namespace idem::inline v0_1

namespace idem {

BodyForm counted_form(const FingerprintParts& parts) {
  const FingerprintRule rule = parts.rule ? sorted(*parts.rule) : FingerprintRule{};
  return form_by(rule, parts, media_type(parts.content_type), counted_codings(parts));
}

std::string counted_codings(const FingerprintParts& parts) {
  return codings_of(parts.content_encoding);
}

}  // namespace idem
